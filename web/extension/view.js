// Shared by the popup and the options page: questions to the worker, metres on a slider, sentences, the picture.

import { METRES } from "./settings.js";

const { runtime } = globalThis.browser ?? globalThis.chrome;
export const $ = (id) => document.getElementById(id);

// The worker's answer; its refusals are sentences.
export async function ask(message) {
  const answer = await runtime.sendMessage(message);
  if (answer?.problem) throw new Error(answer.problem);
  return answer;
}

const SPAN = Math.log(METRES.most / METRES.least);

// A slider's 0 to 100 as metres, in round numbers, and back.
export function metresAt(step) {
  const metres = METRES.least * Math.exp((SPAN * step) / 100);
  const unit = 10 ** Math.floor(Math.log10(metres)) / 10;
  return Math.min(METRES.most, Math.max(METRES.least, Math.round(metres / unit) * unit));
}
export const stepAt = (metres) => Math.round((100 * Math.log(metres / METRES.least)) / SPAN);

export const far = (metres) => (metres < 1000 ? `${Math.round(metres)} m` : `${Number((metres / 1000).toFixed(1))} km`);

const percent = (share) => `${Math.round(100 * share)} %`;

export function bundleSentence({ from, problem, kind, metres, region, to_come }) {
  if (problem) return `The bundle cannot be used: ${problem}. Planar Laplace noise on a grid is used instead. It ignores where people are, and nothing is proved about how well it hides you.`;
  if (from === "none") return "There is no bundle: reports are planar Laplace noise on a grid. It ignores where people are, and nothing is proved about how well it hides you.";
  const made = `The bundle that is ${from === "inside" ? "inside the extension" : "imported"}: ${kind}, for a square of ${far(region.side_m)}${metres ? `, ${far(metres)} off on average` : ""}. `;
  if (!to_come?.loss) return `${made}What to expect on future check-ins was not measured.`;
  const blind = to_come.blind_error == null ? "" : ` (${percent(to_come.blind_error)} without a report, the most that any mechanism can reach)`;
  return `${made}On future check-ins expect reports ${far(to_come.loss.value)} off and the best guess of the sender to be wrong ${percent(to_come.bayes_error.value)} of the time${blind}, by ${to_come.from}. Outside that square, planar Laplace noise is used.`;
}

export function mechanismSentence({ by, metres, extra }, bundle) {
  if (by === "bundle") return extra > 0 ? `By the bundle, with ${far(extra)} of noise on top: at least as private as the bundle's own reports.` : "By the bundle.";
  if (bundle.from !== "none" && bundle.metres && metres < bundle.metres) return `Below the bundle's ${far(bundle.metres)}: planar Laplace noise on a grid, without a proof.`;
  return "Planar Laplace noise on a grid, without a proof of how well it hides you.";
}

// What an adversary could make of several reports, by the bundle's own figures.
export function adversarySentence({ many_reports: many }, drawn) {
  if (!many?.counts) return "What several reports of one person reveal together was not measured. Each new place reveals more.";
  const at = many.counts.findIndex((count) => count >= Math.max(1, drawn));
  const place = at < 0 ? many.counts.length - 1 : Math.max(1, at);
  const one = percent(many.places[0]), now = percent(many.places[place]);
  return `On ${many.from}: from ${many.counts[0]} report the best guess of the sender is wrong ${one} of the time; from ${many.counts[place]} reports from different places, ${now} of the time.`;
}

function shape(kind, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Reports on a plain grid of metres: no map, so that nobody is asked for one.
export function draw(svg, reports) {
  const { width, height } = svg.viewBox.baseVal;
  const middle = reports.reduce((sum, { latitude }) => sum + latitude, 0) / reports.length;
  const east = (from, to) => (((to - from + 540) % 360) - 180) * 111_320 * Math.cos((middle * Math.PI) / 180);
  const origin = reports.at(-1);
  const points = reports.map((report) => ({ x: east(origin.longitude, report.longitude), y: (report.latitude - origin.latitude) * 111_320, r: report.accuracy }));
  const most = Math.max(...points.flatMap(({ x, y, r }) => [Math.abs(x) * (height / width) + r, Math.abs(y) + r]), 50);
  const scale = height / 2 / most;
  const step = 10 ** Math.floor(Math.log10(most));
  const lines = [];
  for (let line = step * Math.ceil(-(width / 2) / scale / step); line * scale < width / 2; line += step) lines.push(shape("line", { class: "line", x1: width / 2 + line * scale, x2: width / 2 + line * scale, y1: 0, y2: height }));
  for (let line = step * Math.ceil(-(height / 2) / scale / step); line * scale < height / 2; line += step) lines.push(shape("line", { class: "line", y1: height / 2 + line * scale, y2: height / 2 + line * scale, x1: 0, x2: width }));
  const marks = points.map(({ x, y, r }, i) => {
    const cx = width / 2 + x * scale, cy = height / 2 - y * scale;
    return [shape("circle", { class: "spread", cx, cy, r: r * scale }), shape("rect", { class: i === points.length - 1 ? "report last" : "report", x: cx - 5, y: cy - 5, width: 10, height: 10 })];
  });
  const bar = [shape("line", { class: "scale", x1: 12, x2: 12 + step * scale, y1: height - 12, y2: height - 12 }), shape("text", { x: 12, y: height - 18 }, far(step))];
  svg.replaceChildren(...lines, ...marks.map(([circle]) => circle), ...marks.map(([, square]) => square), ...bar);
}
