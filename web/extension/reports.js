// Reports of places, kept by a keyed hash: the numbers that a report is drawn with are HMAC-SHA-256 of site, cell,
// period and mechanism, and the place that is answered is the middle of the cell (docs/decisions/0017).  Asking again
// draws nothing new, no table of places is needed, and kept and new reports take the same steps and the same time.

import { OutsideError } from "./sfumato.js";
import { plane } from "./plane.js";
import { periodSeconds, position } from "./policy.js";
import { METRES } from "./settings.js";

export const CELL_M = 25;
export const PERIOD_S = 24 * 60 * 60;
const TRIES = 1000;
const TIME_STEP_MS = 60_000;
const DEGREE_M = 111_319.49; // of the equator
const LAPLACE_95 = 2.3719; // 95 % of planar Laplace reports lie within this many times their mean distance
const STEP_M = 10;

// The cell of a grid over the whole Earth, some `cellM` wide: its name and its middle.
export function cellOf({ latitude, longitude }, cellM = CELL_M) {
  const step = cellM / DEGREE_M;
  const last = Math.ceil(90 / step) - 1;
  const row = Math.max(-last - 1, Math.min(last, Math.floor(latitude / step)));
  const middle = Math.max(-90, Math.min(90, (row + 0.5) * step));
  const columns = Math.max(1, Math.round((360 * Math.cos((middle * Math.PI) / 180)) / step));
  const column = ((Math.floor(((longitude + 180) / 360) * columns) % columns) + columns) % columns;
  return { name: `${row} ${column}`, latitude: middle, longitude: -180 + ((column + 0.5) * 360) / columns };
}

// Numbers on [0, 1) that follow from the key and the words, 53 bits each.
async function numbers(key, words, count) {
  const bytes = [];
  for (let block = 0; bytes.length < 8 * count; block++) {
    const text = new TextEncoder().encode(JSON.stringify([block, ...words]));
    bytes.push(...new Uint8Array(await crypto.subtle.sign("HMAC", key, text)));
  }
  const view = new DataView(Uint8Array.from(bytes).buffer);
  return Array.from({ length: count }, (_, i) => ((view.getUint32(8 * i) >>> 5) * 2 ** 26 + (view.getUint32(8 * i + 4) >>> 6)) / 2 ** 53);
}

export const importKey = (bytes) => crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

const rounded = (metres) => Math.ceil(metres / STEP_M) * STEP_M;
const degrees = (value) => Number(value.toFixed(5));

// Planar Laplace of a mean distance, on the grid: three numbers, one report.
function laplace(place, metres, [angle, first, second]) {
  const radius = -(metres / 2) * (Math.log1p(-first) + Math.log1p(-second));
  const [latitude, longitude] = plane(place).toDegrees([radius * Math.cos(2 * Math.PI * angle), radius * Math.sin(2 * Math.PI * angle)]);
  const cell = cellOf({ latitude, longitude });
  return { latitude: degrees(cell.latitude), longitude: degrees(cell.longitude) };
}

// How a place is answered: by the bundle, by the bundle with noise on top, or by planar Laplace.  Noise on top of a
// report cannot say more than the report, and its mean distance adds to the budget, so both promises hold.
export function mechanismFor({ rule, metres }, device) {
  const budget = device ? budgetOf(device.manifest) : null;
  const wanted = metres ?? budget ?? METRES.usual;
  const fit = rule === "hide" && device && (metres === null || (budget !== null && metres >= budget));
  return fit ? { by: "bundle", metres: wanted, extra: metres === null ? 0 : metres - budget } : { by: "laplace", metres: wanted, extra: 0 };
}

// The metres that a bundle's reports are off on average; null where its loss is not in metres.
export function budgetOf({ budget }) {
  return budget?.loss_function === "euclidean" && budget.max_loss > 0 ? budget.max_loss : null;
}

// How long and for how wide a cell a report is kept, and how far off it may be at most: as the run says, where it does.
// `seconds` is null for ever.
export function keepingOf(device) {
  const said = device?.manifest.keeping ?? { seconds: PERIOD_S };
  const number = (value, usual) => (typeof value === "number" && value >= 0 && value < 1e12 ? value : usual);
  return {
    seconds: periodSeconds(said.seconds),
    cellM: Math.max(1, number(said.cell_m, CELL_M)),
    withinM: number(said.within_m, Infinity),
  };
}

const periodOf = (seconds, now) => (seconds === null ? "ever" : Math.floor(now / 1000 / seconds));

// The report that a site gets for a place (or for the `fixed` one): { position, by, tag }; `tag` is the same for kept reports and tells no place.
export async function report({ key, site, place, fixed, rule, device, now }) {
  const chosen = mechanismFor(rule, device);
  const { cellM, seconds, withinM } = keepingOf(device);
  const period = periodOf(seconds, now);
  const truth = rule.rule === "fixed" ? fixed : place;
  const sound = [truth?.latitude, truth?.longitude].every((value) => typeof value === "number" && Number.isFinite(value));
  if (!sound || Math.abs(truth.latitude) > 90 || Math.abs(truth.longitude) > 180) throw new TypeError("a place is a latitude and a longitude");
  const drawn = (chosen.by === "bundle" && (await byBundle({ key, site, truth, device, period, cellM, withinM, ...chosen }))) || (await byLaplace({ key, site, truth, period, cellM, ...chosen }));
  return { ...drawn, position: position(drawn.report, Math.floor(now / TIME_STEP_MS) * TIME_STEP_MS) };
}

// Null where the place is outside the region that the bundle was made for.
async function byBundle({ key, site, truth, device, period, cellM, withinM, metres, extra }) {
  let point;
  try {
    point = device.truth(truth);
  } catch (problem) {
    if (problem instanceof OutsideError) return null;
    throw problem;
  }
  const { manifest } = device;
  const { centre, side_m } = manifest.region;
  const cell = point.map((value) => Math.floor(value / cellM));
  const middle = cell.map((value, axis) => Math.min(Math.max((value + 0.5) * cellM, centre[axis] - side_m / 2), centre[axis] + side_m / 2));
  const words = ["bundle", manifest.mechanism_hash, metres, site, cell.join(" "), period];
  let chance, first;
  for (let tried = 0; ; tried++) {
    if (tried === TRIES) throw new Error("no report for this place lies within the cap");
    chance = await numbers(key, [...words, tried], manifest.draws + 3);
    const [drawn] = device.reportsFor([middle], [chance.slice(0, manifest.draws)]);
    first = device.written(drawn);
    if (Math.hypot(drawn[0] - middle[0], drawn[1] - middle[1]) <= withinM) break;
  }
  const second = extra > 0 ? laplace(first, extra, chance.slice(manifest.draws)) : first;
  const accuracy = rounded(manifest.accuracy_m + (extra > 0 ? LAPLACE_95 * extra + CELL_M : 0));
  return { report: { ...second, accuracy }, by: "bundle", metres, tag: await tagOf(key, words) };
}

async function byLaplace({ key, site, truth, period, cellM, metres }) {
  const cell = cellOf(truth, cellM);
  const words = ["laplace", metres, site, cell.name, period];
  const drawn = laplace(cell, metres, await numbers(key, words, 3));
  return { report: { ...drawn, accuracy: rounded(LAPLACE_95 * metres + CELL_M + cellM) }, by: "laplace", metres, tag: await tagOf(key, words) };
}

async function tagOf(key, words) {
  const text = new TextEncoder().encode(JSON.stringify(["tag", ...words]));
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, text));
  return Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
