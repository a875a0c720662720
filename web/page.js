// The page: asks for the location, shows the truth beside what a site would see.

import { load, OutsideError } from "./sfumato.js";
import { keeping, position } from "./policy.js";

const POSSIBLE = 400;
const SIZE = 600;
const SHOWN = ["map", "caption", "facts"];
const $ = (id) => document.getElementById(id);
const folder = new URLSearchParams(location.search).get("bundle") ?? ".";

function say(sentence, bad = false) {
  $("state").textContent = sentence;
  $("state").className = bad ? "bad" : "";
}

function shape(kind, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Draws metres about the truth, as wide as the farthest report.
function draw(device, place, report, possible) {
  const metres = (spot) => device.truth(spot, { outside: "clamp" });
  const centre = metres(place), seen = metres(report), others = possible.map(metres);
  const far = Math.max(50, ...[seen, ...others].map((spot) => Math.max(Math.abs(spot[0] - centre[0]), Math.abs(spot[1] - centre[1]))));
  const scale = SIZE / (2.2 * far);
  const at = (spot) => [SIZE / 2 + (spot[0] - centre[0]) * scale, SIZE / 2 - (spot[1] - centre[1]) * scale];
  const step = 10 ** Math.floor(Math.log10(far));
  const lines = [];
  for (let line = 0; line * scale < SIZE / 2; line += step) {
    for (const side of [-1, 1]) {
      const there = SIZE / 2 + side * line * scale;
      lines.push(shape("line", { class: "line", x1: there, x2: there, y1: 0, y2: SIZE }), shape("line", { class: "line", y1: there, y2: there, x1: 0, x2: SIZE }));
    }
  }
  lines.push(shape("line", { class: "scale", x1: 20, x2: 20 + step * scale, y1: SIZE - 20, y2: SIZE - 20 }));
  const label = shape("text", { x: 20, y: SIZE - 28 });
  label.textContent = `${step} m`;
  $("grid").replaceChildren(...lines, label);
  $("spread").replaceChildren(...others.map(at).map(([cx, cy]) => shape("circle", { class: "possible", cx, cy, r: 5 })));
  const [x, y] = at(seen), [cx, cy] = at(centre);
  $("marks").replaceChildren(shape("rect", { class: "report", x: x - 8, y: y - 8, width: 16, height: 16 }), shape("circle", { class: "truth", cx, cy, r: 8 }));
  return Math.hypot(seen[0] - centre[0], seen[1] - centre[1]);
}

function show(device, policy, found) {
  const place = { latitude: found.coords.latitude, longitude: found.coords.longitude };
  const sent = position(policy.report(place), found.timestamp);
  const { latitude, longitude, accuracy } = sent.coords;
  const off = draw(device, place, { latitude, longitude }, device.spread(place, POSSIBLE));
  $("truth").textContent = `${place.latitude.toFixed(5)}, ${place.longitude.toFixed(5)}`;
  $("report").textContent = `${latitude}, ${longitude}`;
  $("distance").textContent = `${Math.round(off)} m`;
  $("accuracy").textContent = `${accuracy} m`;
  for (const id of SHOWN) $(id).removeAttribute("hidden");
  say("");
}

// What was shown of an earlier place.
function hide() {
  for (const id of SHOWN) $(id).setAttribute("hidden", "");
}

function about({ to_come, budget, region, truth_share }) {
  const truth = truth_share ? `It reports your true place ${(100 * truth_share).toFixed(0)}\u00a0% of the time. ` : "";
  const made = `This mechanism covers a square of ${(region.side_m / 1000).toFixed(1)} km. ${truth}`;
  const limit = budget.max_loss ? ` (budget ${budget.max_loss} m)` : "";
  if (!to_come || to_come.loss === null)
    return `${made}How far off its reports are on average${limit}, and how often the best guess of the sender is wrong, was not measured.`;
  const loss = to_come.loss.value.toFixed(0), error = (100 * to_come.bayes_error.value).toFixed(0);
  const blind = to_come.blind_error == null ? "" : ` Without a report, a guess is wrong ${(100 * to_come.blind_error).toFixed(0)}\u00a0% of the time: that is the most that any mechanism can reach.`;
  return `${made}Expect its reports to be ${loss} m off on average${limit}, and the best guess of the sender to be wrong ${error}\u00a0% of the time.${blind} Estimated from ${to_come.from}.`;
}

async function start() {
  const device = await load(new URL(folder, location.href).href);
  const policy = keeping(device);
  $("about").textContent = about(device.manifest);
  $("locate").disabled = false;
  $("locate").addEventListener("click", () => {
    say("Asking your browser …");
    hide();
    navigator.geolocation.getCurrentPosition(
      (found) => {
        try {
          show(device, policy, found);
        } catch (problem) {
          say(problem instanceof OutsideError ? "You are outside the region that this mechanism was made for; it has no report for you." : "The report could not be drawn.", true);
        }
      },
      () => say("Your browser did not give a location.", true),
    );
  });
}

start().catch((problem) => {
  $("about").textContent = "";
  say(problem.message, true);
});
