// Degrees to metres and back, on a plane that touches the Earth at one point: as src/sfumato/data/plane.py.

const AXIS_M = 6378137.0;
const FLATTENING = 1 / 298.257223563;
const ECCENTRICITY_2 = FLATTENING * (2 - FLATTENING);
const POLAR_AXIS_M = AXIS_M * (1 - FLATTENING);
const RADIANS = Math.PI / 180;

function earthCentred(latitude, longitude) {
  const lat = latitude * RADIANS, lon = longitude * RADIANS;
  const normal = AXIS_M / Math.sqrt(1 - ECCENTRICITY_2 * Math.sin(lat) ** 2);
  const flat = normal * Math.cos(lat);
  return [flat * Math.cos(lon), flat * Math.sin(lon), normal * (1 - ECCENTRICITY_2) * Math.sin(lat)];
}

export function plane({ latitude, longitude }) {
  const sinLat = Math.sin(latitude * RADIANS), cosLat = Math.cos(latitude * RADIANS);
  const sinLon = Math.sin(longitude * RADIANS), cosLon = Math.cos(longitude * RADIANS);
  const start = earthCentred(latitude, longitude);
  const up = [cosLat * cosLon, cosLat * sinLon, sinLat];
  const weight = [1, 1, (AXIS_M / POLAR_AXIS_M) ** 2];
  const square = up.reduce((sum, part, i) => sum + weight[i] * part * part, 0);
  return {
    // Metres east and north of the centre; null for a point too far off for a flat picture.
    toMetres(lat, lon) {
      const east = ((((lon - longitude + 180) % 360) + 360) % 360) - 180;
      if (Math.abs(lat - latitude) > 5 || Math.abs(east) > 90) return null;
      const [x, y, z] = earthCentred(lat, longitude + east).map((part, i) => part - start[i]);
      return [-sinLon * x + cosLon * y, -sinLat * (cosLon * x + sinLon * y) + cosLat * z];
    },
    toDegrees([x, y]) {
      const flat = [start[0] - x * sinLon - y * sinLat * cosLon, start[1] + x * cosLon - y * sinLat * sinLon, start[2] + y * cosLat];
      const half = flat.reduce((sum, part, i) => sum + weight[i] * part * up[i], 0);
      const rest = flat.reduce((sum, part, i) => sum + weight[i] * part * part, 0) - AXIS_M ** 2;
      const drop = -rest / (half + Math.sqrt(half * half - square * rest));
      const [a, b, c] = flat.map((part, i) => part + drop * up[i]);
      return [Math.atan2(c, (1 - ECCENTRICITY_2) * Math.hypot(a, b)) / RADIANS, Math.atan2(b, a) / RADIANS];
    },
  };
}
