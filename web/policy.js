// When to draw: a report is kept for a while, so that asking often tells no more than asking once.

const TRIES = 1000;
const HOUR_S = 60 * 60;
const DAY = { seconds: 24 * 60 * 60, cell_m: 25, within_m: null };

// For how many seconds a report is kept, null for ever.  Never for none: new draws of one place would average to it.
export function periodSeconds(value) {
  return value === null || (typeof value === "number" && value > 0 && value < 1e12) ? value : HOUR_S;
}

// `device.report`, kept as the bundle says (`manifest.keeping`): all places of a cell have one report
// in each period of the clock, drawn for the middle of the cell; `seconds` is null for ever, and what
// is no length of time is an hour.  Kept in memory only; `now` gives milliseconds.  `report` takes
// `outside` for one place, as a device does.
export function keeping(device, { how = device.manifest?.keeping ?? DAY, outside = "refuse", now = () => Date.now() } = {}) {
  const kept = new Map();
  const seconds = periodSeconds(how.seconds);
  let period = null;
  return {
    report(place, { outside: beyond = outside } = {}) {
      const current = seconds === null ? 0 : Math.floor(now() / 1000 / seconds);
      if (current !== period) kept.clear();
      period = current;
      const cell = device.truth(place, { outside: beyond }).map((value) => Math.floor(value / how.cell_m));
      const name = cell.join(" ");
      if (!kept.has(name)) kept.set(name, Object.freeze(within(device, cell.map((value) => (value + 0.5) * how.cell_m), how.within_m)));
      return kept.get(name);
    },
    forget: () => kept.clear(),
  };
}

// A report for a point in metres that lies within `most` metres of it, so that a hard cap holds in
// all of its cell: draws that do not are drawn again.
function within(device, point, most) {
  for (let tried = 0; tried < TRIES; tried++) {
    const report = device.reportAt(point);
    if (most === null || device.off(point, report) <= most) return report;
  }
  throw new Error("no report for this place lies within the cap");
}

// A position as the browser gives it, with the place replaced and every field that is not protected left empty.
export function position(report, timestamp) {
  const coords = { ...report, altitude: null, altitudeAccuracy: null, heading: null, speed: null };
  return { coords, timestamp };
}
