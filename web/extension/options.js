// The options page: settings as a whole, and the bundle.

import { $, ask, bundleSentence, far, metresAt, stepAt } from "./view.js";
import { METRES } from "./settings.js";

const chosen = (name) => document.querySelector(`[name=${name}]:checked`)?.value;
const choose = (name, value) => document.querySelectorAll(`[name=${name}]`).forEach((radio) => (radio.checked = radio.value === value));
const FILES = ["manifest.json", "mechanism.onnx", "vectors.json"];
let removed = { sites: [], leave: [] }, bundle, settings;

function say(sentence, bad = false) {
  $("state").textContent = sentence;
  $("state").className = bad ? "bad" : "";
}

const words = ({ rule, metres }) => ({ hide: `a report ${metres ? `about ${far(metres)} off` : "of the bundle"}`, fixed: "a fixed place, with noise", refuse: "nothing", off: "my true place" })[rule];

const SAYS = {
  granted: "The browser lets sfumato know your location; sites get what is set below.",
  prompt: "The browser does not let sfumato know your location yet: no site gets a report.",
  denied: "The browser does not let sfumato know your location, so no site gets a report. Change it in the browser's settings of this page.",
};

async function showLeave(canClose) {
  $("closing").hidden = !canClose;
  const { state } = await navigator.permissions.query({ name: "geolocation" });
  const needed = settings.strict && canClose;
  $("browser").textContent = needed ? SAYS[state] : "";
  $("let").hidden = !needed || state !== "prompt";
}

// The browser's own prompt, for the extension.
async function letAsk() {
  await globalThis.browsersPlace();
  await ask({ kind: "asked" });
}

// What is set for sites, without what was removed here.
function remaining({ sites, leave }) {
  const without = (named, names) => Object.fromEntries(Object.entries(named).filter(([name]) => !names.includes(name)));
  return { sites: without(sites, removed.sites), leave: without(leave, removed.leave) };
}

function listSites() {
  const { sites, leave } = remaining(settings);
  const named = [
    ...Object.entries(sites).map(([site, rule]) => [site, words(rule), () => removed.sites.push(site)]),
    ...Object.entries(leave).map(([host, said]) => [host, said === "granted" ? "may ask" : "may not ask", () => removed.leave.push(host)]),
  ].sort();
  $("no-sites").hidden = named.length > 0;
  $("sites").hidden = named.length === 0;
  $("sites").tBodies[0].replaceChildren(
    ...named.map(([site, said, remove]) => {
      const row = document.createElement("tr"), button = document.createElement("button");
      button.type = "button";
      button.textContent = "Remove";
      button.setAttribute("aria-label", `Remove that ${site} ${said.startsWith("may") ? said : `gets ${said}`}`);
      button.addEventListener("click", () => {
        remove();
        listSites();
        say("Not saved yet.");
      });
      row.append(...[site, said].map((text) => Object.assign(document.createElement("td"), { textContent: text })), Object.assign(document.createElement("td")));
      row.lastChild.append(button);
      return row;
    }),
  );
}

function showMetres() {
  const metres = metresAt(Number($("metres").value));
  $("metres-said").textContent = far(metres);
  $("metres").setAttribute("aria-valuetext", far(metres));
  $("how-far").hidden = $("own").checked || !["hide", "fixed"].includes(chosen("rule"));
}

async function show() {
  let damaged, canClose;
  ({ settings, bundle, damaged, canClose } = await ask({ kind: "settings" }));
  const { rest, listed, list } = settings;
  removed = { sites: [], leave: [] };
  choose("strict", settings.strict ? "yes" : "no");
  choose("rule", rest.rule);
  choose("listed", listed);
  choose("bundle", settings.bundle);
  $("list").value = list.join("\n");
  $("own").checked = (rest.metres ?? null) === null;
  $("metres").value = stepAt(rest.metres ?? bundle.metres ?? METRES.usual);
  $("latitude").value = settings.place?.latitude ?? "";
  $("longitude").value = settings.place?.longitude ?? "";
  $("bundle").textContent = bundleSentence(bundle);
  showMetres();
  listSites();
  await showLeave(canClose);
  if (damaged) say(`The stored settings are damaged (${damaged}); the defaults protect you until you save new ones.`, true);
}

const done = (work, sentence) => async (event) => {
  event?.preventDefault?.();
  try {
    await work(event);
    await show();
    say(sentence);
  } catch (problem) {
    say(problem.message, true);
  }
};

function place() {
  const latitude = $("latitude").value, longitude = $("longitude").value;
  return latitude === "" && longitude === "" ? null : { latitude: Number(latitude), longitude: Number(longitude) };
}

// The popup may have set sites since this page was shown: those stay.
async function save() {
  const { settings: now } = await ask({ kind: "settings" });
  await ask({
    kind: "save",
    settings: {
      ...now,
      ...remaining(now),
      strict: chosen("strict") === "yes",
      rest: { rule: chosen("rule"), metres: $("own").checked ? null : metresAt(Number($("metres").value)) },
      place: place(),
      listed: chosen("listed"),
      list: $("list").value.split(/\s*\n\s*/).filter((line) => line),
      bundle: chosen("bundle"),
    },
  });
}

async function importFiles() {
  const files = {};
  for (const file of $("files").files) {
    if (!FILES.includes(file.name)) throw new Error(`${file.name} is no file of a bundle; choose ${FILES.join(", ")}`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    files[file.name] = btoa(text);
  }
  await ask({ kind: "bundle", files });
}

$("settings").addEventListener("submit", done(save, "Saved."));
$("settings").addEventListener("input", () => {
  showMetres();
  say("Not saved yet.");
});
for (const radio of document.querySelectorAll("[name=bundle]")) radio.addEventListener("change", done(save, "Saved."));
$("let").addEventListener("click", done(letAsk, ""));
$("files").addEventListener("change", done(importFiles, "The bundle was checked and is in use."));
show()
  .then(() => location.hash === "#let" && !$("let").hidden && $("let").click())
  .catch((problem) => say(problem.message, true));
