// The options page: settings as a whole, and the bundle.

import { $, ask, bundleSentence, far, metresAt, stepAt } from "./view.js";
import { METRES } from "./settings.js";

const chosen = (name) => document.querySelector(`[name=${name}]:checked`)?.value;
const choose = (name, value) => document.querySelectorAll(`[name=${name}]`).forEach((radio) => (radio.checked = radio.value === value));
const FILES = ["manifest.json", "mechanism.onnx", "vectors.json"];
let sites = {}, bundle, settings;

function say(sentence, bad = false) {
  $("state").textContent = sentence;
  $("state").className = bad ? "bad" : "";
}

const words = ({ rule, metres }) => ({ hide: `a report ${metres ? `about ${far(metres)} off` : "of the bundle"}`, fixed: "a fixed place, with noise", refuse: "nothing", off: "my true place" })[rule];

function listSites() {
  const named = Object.entries(sites).sort();
  $("no-sites").hidden = named.length > 0;
  $("sites").hidden = named.length === 0;
  $("sites").tBodies[0].replaceChildren(
    ...named.map(([site, rule]) => {
      const row = document.createElement("tr"), button = document.createElement("button");
      button.type = "button";
      button.textContent = "Remove";
      button.setAttribute("aria-label", `Remove the setting of ${site}`);
      button.addEventListener("click", () => {
        delete sites[site];
        listSites();
        say("Not saved yet.");
      });
      row.append(...[site, words(rule)].map((text) => Object.assign(document.createElement("td"), { textContent: text })), Object.assign(document.createElement("td")));
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
  let damaged;
  ({ settings, bundle, damaged } = await ask({ kind: "settings" }));
  const { rest, listed, list } = settings;
  sites = { ...settings.sites };
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

const save = () =>
  ask({
    kind: "save",
    settings: {
      ...settings,
      rest: { rule: chosen("rule"), metres: $("own").checked ? null : metresAt(Number($("metres").value)) },
      place: place(),
      listed: chosen("listed"),
      list: $("list").value.split(/\s*\n\s*/).filter((line) => line),
      sites,
      bundle: chosen("bundle"),
    },
  });

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
$("files").addEventListener("change", done(importFiles, "The bundle was checked and is in use."));
show().catch((problem) => say(problem.message, true));
