// Degrees to metres and back on the data's own plane: the formulas of sfumato.data.plane.

const AXIS_M = 6378137.0;
const FLATTENING = 1 / 298.257223563;
const ECCENTRICITY_2 = FLATTENING * (2 - FLATTENING);
const POLAR_AXIS_M = AXIS_M * (1 - FLATTENING);
const RADIAN = Math.PI / 180;

function earthCentred(latitude, longitude) {
  const lat = latitude * RADIAN;
  const lon = longitude * RADIAN;
  const normal = AXIS_M / Math.sqrt(1 - ECCENTRICITY_2 * Math.sin(lat) ** 2);
  const flat = normal * Math.cos(lat);
  return [flat * Math.cos(lon), flat * Math.sin(lon), normal * (1 - ECCENTRICITY_2) * Math.sin(lat)];
}

export function toMetres(plane, latitude, longitude) {
  const [sinLat, cosLat] = [Math.sin(plane.latitude * RADIAN), Math.cos(plane.latitude * RADIAN)];
  const [sinLon, cosLon] = [Math.sin(plane.longitude * RADIAN), Math.cos(plane.longitude * RADIAN)];
  const start = earthCentred(plane.latitude, plane.longitude);
  const [a, b, c] = earthCentred(latitude, longitude).map((value, axis) => value - start[axis]);
  return [-sinLon * a + cosLon * b, -sinLat * (cosLon * a + sinLon * b) + cosLat * c];
}

export function toDegrees(plane, x, y) {
  const [sinLat, cosLat] = [Math.sin(plane.latitude * RADIAN), Math.cos(plane.latitude * RADIAN)];
  const [sinLon, cosLon] = [Math.sin(plane.longitude * RADIAN), Math.cos(plane.longitude * RADIAN)];
  const start = earthCentred(plane.latitude, plane.longitude);
  const flat = [
    start[0] - x * sinLon - y * sinLat * cosLon,
    start[1] + x * cosLon - y * sinLat * sinLon,
    start[2] + y * cosLat,
  ];
  const up = [cosLat * cosLon, cosLat * sinLon, sinLat];
  const weight = [1, 1, (AXIS_M / POLAR_AXIS_M) ** 2];
  const sum = (one, other) => weight.reduce((total, w, axis) => total + w * one[axis] * other[axis], 0);
  const square = sum(up, up);
  const half = sum(flat, up);
  const rest = sum(flat, flat) - AXIS_M ** 2;
  const drop = -rest / (half + Math.sqrt(half * half - square * rest));
  const earth = flat.map((value, axis) => value + drop * up[axis]);
  const latitude = Math.atan2(earth[2], (1 - ECCENTRICITY_2) * Math.hypot(earth[0], earth[1])) / RADIAN;
  return [latitude, Math.atan2(earth[1], earth[0]) / RADIAN];
}
