// When to draw: a report is kept for a while, so that asking often tells no more than asking once.

const CELL_M = 25;

// `device.report`, with one report for all places of a cell until `minutes` have passed.
// Kept in memory only; `now` gives milliseconds.  `report` takes `outside` for one place, as a device does.
export function keeping(device, { minutes = 24 * 60, cellM = CELL_M, outside = "refuse", now = () => Date.now() } = {}) {
  const kept = new Map();
  return {
    report(place, { outside: beyond = outside } = {}) {
      const truth = device.truth(place, { outside: beyond });
      const cell = truth.map((value) => Math.floor(value / cellM)).join(" ");
      const held = kept.get(cell);
      if (held && now() < held.until) return held.report;
      const report = Object.freeze(device.report(place, { outside: beyond }));
      kept.set(cell, { report, until: now() + minutes * 60000 });
      return report;
    },
    forget: () => kept.clear(),
  };
}

// A position as the browser gives it, with the place replaced and every field that is not protected left empty.
export function position(report, timestamp) {
  const coords = { ...report, altitude: null, altitudeAccuracy: null, heading: null, speed: null };
  return { coords, timestamp };
}
