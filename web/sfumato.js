// Loads a bundle that `sfumato export` wrote and answers true places with reports, in a browser or in Node.
//
//   import { load } from "./sfumato.js";
//   const device = await load("bundle/");
//   device.report({ latitude: 48.857, longitude: 2.347 });  // { latitude, longitude, accuracy }
//
// Chance comes from crypto.getRandomValues.  Nothing is stored, logged or sent.

import { readMechanism } from "./onnx.js";
import { plane } from "./plane.js";

const FORMAT = "sfumato bundle 1";
const FILES = ["mechanism.onnx", "vectors.json"];
const HASH_FIELD = "manifest_sha256";
const BLANK = "0".repeat(64);
const MOST_BYTES = 16 << 20;

// From a folder's address (browser), a folder's path (Node) or a function of a file's name to its bytes.
export async function load(from) {
  const read = typeof from === "function" ? from : reader(from);
  const text = new TextDecoder("utf-8", { fatal: true });
  let manifest, raw;
  try {
    raw = text.decode(await read("manifest.json"));
    manifest = JSON.parse(raw);
  } catch {
    throw new Error("there is no readable manifest.json; export the bundle again");
  }
  if (manifest?.format !== FORMAT) throw new Error(`this is not a bundle of this version; expected '${FORMAT}'`);
  const said = manifest[HASH_FIELD];
  if (!/^[0-9a-f]{64}$/.test(said) || raw.split(said).length !== 2 || (await sha256(new TextEncoder().encode(raw.replace(said, BLANK)))) !== said) {
    throw new Error("manifest.json was changed after it was written; export the bundle again");
  }
  const bytes = {};
  for (const name of FILES) {
    bytes[name] = await read(name);
    if (bytes[name].length > MOST_BYTES || (await sha256(bytes[name])) !== manifest.files?.[name]?.sha256) {
      throw new Error(`${name} is not the file that the manifest names; export the bundle again`);
    }
  }
  return new Device(manifest, readMechanism(bytes["mechanism.onnx"]), JSON.parse(text.decode(bytes["vectors.json"])).vectors);
}

export class OutsideError extends Error {}

class Device {
  #mechanism;
  #plane;

  constructor(manifest, mechanism, vectors) {
    this.manifest = Object.freeze(manifest);
    this.#mechanism = mechanism;
    this.#plane = manifest.plane && plane(manifest.plane);
    for (const vector of vectors) {
      const found = this.written(mechanism([vector.truth], [vector.chance])[0]);
      const near = Object.keys(vector.written).every((name) => Math.abs(found[name] - vector.written[name]) <= 1.01 * 10 ** -manifest.decimals);
      if (!near) throw new Error("this machine's arithmetic does not give the bundle's test reports; it cannot be used here");
    }
  }

  // A report in place of a true place.  `outside` says what to do beyond the region: "refuse" or "clamp".
  report(place, { outside = "refuse" } = {}) {
    return this.reportAt(this.truth(place, { outside }));
  }

  // A report for a point in metres; one beyond the region's edge is moved there first.
  reportAt(point) {
    const { centre, side_m } = this.manifest.region;
    const truth = point.map((value, axis) => Math.min(Math.max(value, centre[axis] - side_m / 2), centre[axis] + side_m / 2));
    return { ...this.written(this.#mechanism([truth], [this.#chance()])[0]), accuracy: this.manifest.accuracy_m };
  }

  // How many metres a report is off a point in metres.
  off(point, report) {
    const seen = this.#plane ? this.#plane.toMetres(report.latitude, report.longitude) : [report.x, report.y];
    return Math.hypot(seen[0] - point[0], seen[1] - point[1]);
  }

  // Reports that could be drawn for a place, to show how far they spread.
  spread(place, count, { outside = "refuse" } = {}) {
    const truth = this.truth(place, { outside });
    const reports = this.#mechanism(Array(count).fill(truth), Array.from({ length: count }, () => this.#chance()));
    return reports.map((report) => this.written(report));
  }

  // Reports for given numbers in place of drawn ones: for tests only.
  reportsFor(truths, chances) {
    return this.#mechanism(truths, chances);
  }

  // A place in metres on the plane.
  truth(place, { outside = "refuse" } = {}) {
    const names = this.#plane ? ["latitude", "longitude"] : ["x", "y"];
    const [first, second] = names.map((name) => place?.[name]);
    const sound = [first, second].every((value) => typeof value === "number" && Number.isFinite(value));
    if (!sound || (this.#plane && (Math.abs(first) > 90 || Math.abs(second) > 180))) throw new TypeError(`a place is two numbers: ${names.join(" and ")}`);
    const { centre, side_m } = this.manifest.region;
    const point = this.#plane ? this.#plane.toMetres(first, second) : [first, second];
    const inside = point && point.every((value, axis) => Math.abs(value - centre[axis]) <= side_m / 2);
    if (inside) return point;
    if (outside !== "clamp" || !point) throw new OutsideError("this place is outside the region that the mechanism was made for");
    return point.map((value, axis) => Math.min(Math.max(value, centre[axis] - side_m / 2), centre[axis] + side_m / 2));
  }

  // Metres on the plane as they are written: rounded, so that low digits say nothing.
  written(point) {
    const round = (value) => Number(value.toFixed(this.manifest.decimals));
    if (!this.#plane) return { x: round(point[0]), y: round(point[1]) };
    const [latitude, longitude] = this.#plane.toDegrees(point);
    return { latitude: round(latitude), longitude: round(longitude) };
  }

  #chance() {
    const bits = crypto.getRandomValues(new Uint32Array(2 * this.manifest.draws));
    return Array.from({ length: this.manifest.draws }, (_, i) => ((bits[2 * i] >>> 5) * 2 ** 26 + (bits[2 * i + 1] >>> 6)) / 2 ** 53);
  }
}

function reader(folder) {
  const base = String(folder).replace(/\/*$/, "/");
  if (typeof window === "undefined" && typeof process !== "undefined" && process.versions?.node && !/^https?:/.test(base)) {
    return async (name) => new Uint8Array(await (await import("node:fs/promises")).readFile(base.startsWith("file:") ? new URL(base + name) : base + name));
  }
  return async (name) => {
    const answer = await fetch(base + name);
    if (!answer.ok) throw new Error(`${name} cannot be read`);
    return new Uint8Array(await answer.arrayBuffer());
  };
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
