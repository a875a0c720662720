// The popup: what the site of this tab gets, what it saw, and one click to change either.

import { $, adversarySentence, ask, draw, far, mechanismSentence, metresAt, stepAt } from "./view.js";

const api = globalThis.browser ?? globalThis.chrome;
const radios = (name = "rule") => [...document.querySelectorAll(`[name=${name}]`)];
let url, state;

const GETS = {
  hide: ({ chosen }) => `gets a report about ${far(chosen.metres)} off, kept for a place and a period`,
  fixed: () => "gets a fixed place, with noise",
  refuse: () => "gets nothing: every request is refused",
  off: () => "gets your true place",
};

// What the user's leave makes of it.
function held({ leave, rule, asking }) {
  if (rule.rule === "refuse" || !leave || leave === "granted") return "";
  if (leave === "denied") return "is refused; if you allow it, it ";
  return `${asking ? "asks for your location and waits" : "gets nothing until you allow it"}; then it `;
}

function seen({ reports, drawn, kept }, { keeping, metres }, chosen) {
  $("saw").hidden = reports.length === 0;
  if (!reports.length) return;
  const last = reports.at(-1);
  const near = reports.filter(({ latitude, longitude }) => Math.abs(latitude - last.latitude) < 1 && Math.abs(((longitude - last.longitude + 540) % 360) - 180) < 2);
  draw($("picture"), near);
  const seconds = keeping ? keeping.seconds : 86_400;
  const days = seconds === null ? "until the key is removed" : seconds === 86_400 ? "once a day" : seconds === 3600 ? "once an hour" : `once in ${Number((seconds / 3600).toFixed(1))} hours`;
  const others = reports.length - near.length;
  $("picture-said").textContent = `${near.length === 1 ? "The last report" : `The last ${near.length} different reports`} (squares; the newest is framed) and how far off each may be (circles), since the browser was started.${others ? ` Not shown: ${others} more than 100 km away.` : ""}`;
  $("counts").textContent = `Reports given: ${drawn + kept}. New ones drawn: ${drawn}. Kept ones given again: ${kept}.`;
  $("spent").textContent = `Budget: ${far(chosen?.metres ?? metres ?? reports.at(-1).metres)} per report on average; spent ${drawn} time${drawn === 1 ? "" : "s"}. A place of ${keeping?.cellM ?? 25} m spends it ${seconds === null ? "once, " : ""}${days}, however often the site asks.`;
  $("adversary").textContent = adversarySentence(state.bundle, drawn);
}

async function show() {
  state = await ask({ kind: "show", url });
  const { host, site, rule, paused, chosen, bundle, damaged, leave, asking, browser, open } = state;
  $("site").textContent = (rule.rule === "off" || leave ? host : site) ?? "No site here";
  $("gets").textContent = !site ? "The browser's own pages ask for no place." : `${held(state)}${GETS[rule.rule](state)} (${rule.why}).`;
  $("gets").className = rule.rule === "off" && leave !== "denied" ? "truth" : "";
  $("leave").hidden = !leave || rule.rule === "refuse";
  for (const radio of radios("leave")) radio.checked = radio.value === leave;
  $("browser").hidden = browser !== "prompt" && browser !== "denied";
  $("let").hidden = browser !== "prompt";
  $("rules").hidden = !site || paused;
  for (const radio of radios()) radio.checked = radio.value === rule.rule;
  $("how-far").hidden = !chosen;
  if (chosen) {
    $("metres").value = stepAt(chosen.metres);
    $("metres-said").textContent = far(chosen.metres);
    $("metres").setAttribute("aria-valuetext", far(chosen.metres));
    $("by").textContent = mechanismSentence(chosen, bundle);
  }
  $("default").hidden = rule.why !== "set for this site";
  $("pause").textContent = paused ? "Protect again" : "Pause everywhere";
  $("pause").setAttribute("aria-pressed", String(paused));
  if (state.seen) seen(state.seen, bundle, chosen);
  if (damaged) problem(`The stored settings are damaged (${damaged}); the defaults protect you until you save new ones.`);
  else if (open) problem("A policy of this machine or another extension lets the browser itself answer this site: a site that is written against sfumato can get your true place.");
  else if (bundle.problem) problem(`The bundle cannot be used: ${bundle.problem}.`);
}

function problem(sentence) {
  $("problem").textContent = sentence;
  $("problem").hidden = false;
}

const done = (work) => async (event) => {
  event?.preventDefault?.();
  $("problem").hidden = true;
  try {
    await work();
    await show();
  } catch (found) {
    problem(found.message);
    await show().catch(() => {});
  }
};

// The slider's place for the bundle's own metres means these, not the round number beside them.
function wantedMetres() {
  const step = Number($("metres").value), own = state.bundle.metres;
  if (state.chosen && step === stepAt(state.chosen.metres)) return state.rule.metres ?? null;
  return own && step === stepAt(own) ? null : metresAt(step);
}

const setRule = () => ask({ kind: "site", url, rule: { rule: radios().find((radio) => radio.checked).value, metres: wantedMetres() } });

for (const radio of radios()) radio.addEventListener("change", done(setRule));
for (const radio of radios("leave")) radio.addEventListener("change", done(() => ask({ kind: "leave", url, leave: radio.value })));
$("let").addEventListener("click", () => api.tabs.create({ url: api.runtime.getURL("options.html#let") }));
$("metres").addEventListener("input", () => ($("metres-said").textContent = far(metresAt(Number($("metres").value)))));
$("metres").addEventListener("change", done(setRule));
$("default").addEventListener("click", done(() => ask({ kind: "site", url, rule: null })));
$("pause").addEventListener("click", done(() => ask({ kind: "pause", on: !state.paused })));
$("forget").addEventListener("click", done(() => ask({ kind: "forget", site: state.site })));
$("options").addEventListener("click", () => api.runtime.openOptionsPage());

const asked = new URLSearchParams(location.search).get("url"); // for tests, which have no toolbar
// A page chooses when it asks, and so when the popup opens: a click that was aimed at the page does nothing here.
const AIMED_ELSEWHERE_MS = 500;
url = asked ?? (await api.tabs.query({ active: true, currentWindow: true }))[0]?.url ?? "";
await done(async () => {})();
setTimeout(() => (document.querySelector("main").inert = false), AIMED_ELSEWHERE_MS);
