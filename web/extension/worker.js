// The worker: holds settings, key and mechanism, draws reports, and remembers what each site saw.
//
// On disk: settings, the key of kept reports, an imported bundle.  In memory, gone with the browser: what sites saw,
// who waits for leave to ask, and whether protection is paused.  True places are in neither.

import { load } from "./sfumato.js";
import { checked, checkedRule, DEFAULTS, FILES, hostOf, nameFor, ruleFor, siteOf } from "./settings.js";
import { budgetOf, importKey, keepingOf, mechanismFor, report } from "./reports.js";

const api = globalThis.browser ?? globalThis.chrome;
const { runtime, storage, action, tabs } = api;
const MOST_SEEN = 50;
const MOST_TAGS = 5_000;
const BUNDLE = ["manifest.json", "mechanism.onnx", "vectors.json"];
const MOST_BYTES = 4 << 20;

storage.local.setAccessLevel?.({ accessLevel: "TRUSTED_CONTEXTS" })?.catch(() => {});

// One change at a time: what is read, changed and written is not crossed by another change.
let queue = Promise.resolve();
const inTurn = (work) => (queue = queue.then(work, work));

async function settings() {
  const { settings } = await storage.local.get("settings");
  if (settings === undefined) return { ...DEFAULTS, damaged: null };
  try {
    return { ...checked(settings), damaged: null };
  } catch (problem) {
    return { ...DEFAULTS, damaged: problem.message }; // protects; the options page says so
  }
}

// One value under one name: written whole or not at all.
async function save(value) {
  await storage.local.set({ settings: checked(value) });
  await closeNatives();
  await changed();
}

async function changed() {
  for (const tab of await tabs.query({})) {
    tabs.sendMessage(tab.id, { kind: "changed" }).catch(() => {});
    badge(tab).catch(() => {});
  }
}

const paused = async () => (await storage.session.get("paused")).paused === true;

let keyPromise = null;
function key() {
  keyPromise ??= (async () => {
    const { key } = await storage.local.get("key");
    if (/^[0-9a-f]{64}$/.test(key)) return importKey(Uint8Array.from(key.match(/../g), (byte) => parseInt(byte, 16)));
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    await storage.local.set({ key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") });
    return importKey(bytes);
  })();
  keyPromise.catch(() => (keyPromise = null));
  return keyPromise;
}

// ---- Natives closed -------------------------------------------------------------------------------------------------
//
// Whatever function of the browser a page gets hold of, the browser itself denies it: every site, always, also where
// protection is off or paused.  The one rule is never taken back and set again, so there is no moment between.  The
// browser keeps it over restarts, and takes it away with the extension.

const SITES = ["http://*/*", "https://*/*"];
const canClose = !!(api.contentSettings?.location && api.offscreen);

async function closeNatives() {
  if (!canClose || api.extension.inIncognitoContext) return; // one worker sets what holds for private windows too
  const { location } = api.contentSettings;
  if (!(await settings()).strict) await location.clear({});
  else for (const primaryPattern of SITES) await location.set({ primaryPattern, setting: "block" });
}

closeNatives().catch(() => {});
storage.onChanged.addListener((changes, area) => area === "local" && changes.settings && closeNatives().catch(() => {}));

// Whether the browser denies this address: a policy of the machine, or another extension, may have the last word.
async function isClosed(url) {
  const found = await api.contentSettings.location.get({ primaryUrl: url, incognito: api.extension.inIncognitoContext });
  return found.setting === "block";
}

const byUs = ({ strict }, host) => strict && canClose && host !== FILES;

// What the browser says of the extension's own leave to know the place.
const ourLeave = async () => (await navigator.permissions.query({ name: "geolocation" })).state;

// Both are needed: the browser's leave for the extension, and the user's for the site.
async function leaveFor({ leave }, host) {
  const browsers = await ourLeave();
  if (browsers === "denied" || leave[host] === "denied") return "denied";
  return browsers === "granted" && leave[host] === "granted" ? "granted" : "prompt";
}

const isAsking = async (host) => (await storage.session.get("asking")).asking?.includes(host) ?? false;

// A site that asks and has no leave yet: the badge says so, and the popup opens where the browser lets it.
async function markAsking(host, tab) {
  const { asking = [] } = await storage.session.get("asking");
  if (asking.includes(host)) return;
  await storage.session.set({ asking: [...asking, host].slice(-MOST_SEEN) });
  await badge(tab);
  if (tab.active) action.openPopup?.({ windowId: tab.windowId })?.catch(() => {}); // not waited for: it may never open
}

let opening = null;
async function ourPlace(question) {
  opening ??= (async () => {
    if (await api.offscreen.hasDocument()) return;
    await api.offscreen.createDocument({ url: "place.html", reasons: ["GEOLOCATION"], justification: "reports are drawn of the place" });
  })().finally(() => (opening = null));
  await opening;
  return runtime.sendMessage({ kind: "place", question });
}

// ---- The mechanism -------------------------------------------------------------------------------------------------

const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const fromFiles = (files) => load(async (name) => decoded(files[name] ?? ""));

let devicePromise = null;
// { device, from, problem }: the bundle in use; without one, `device` is null and planar Laplace answers.
function mechanism() {
  devicePromise ??= (async () => {
    const { bundle } = await settings();
    if (bundle === "none") return { device: null, from: "none", problem: null };
    try {
      if (bundle === "imported") return { device: usable(await fromFiles((await storage.local.get("bundle")).bundle ?? {})), from: "imported", problem: null };
      const inside = await fetch(runtime.getURL("bundle/manifest.json")).catch(() => null);
      if (!inside?.ok) return { device: null, from: "none", problem: null };
      return { device: usable(await load(runtime.getURL("bundle/"))), from: "inside", problem: null };
    } catch (problem) {
      return { device: null, from: "none", problem: problem.message };
    }
  })();
  return devicePromise;
}

function usable(device) {
  if (!device.manifest.plane) throw new Error("this bundle's places are not latitudes and longitudes; export one for a map");
  return device;
}

// Checks a bundle as the module does, then stores it, then uses it: at each moment there is a whole one.
async function importBundle(files) {
  const kept = {};
  for (const name of BUNDLE) {
    if (typeof files?.[name] !== "string") throw new Error(`${name} is missing; choose the three files of a bundle: ${BUNDLE.join(", ")}`);
    if (files[name].length > (MOST_BYTES * 4) / 3 + 4) throw new Error(`${name} is larger than a browser stores for an extension; expected at most ${MOST_BYTES} bytes: export it with --extension`);
    kept[name] = files[name];
  }
  usable(await fromFiles(kept));
  try {
    await storage.local.set({ bundle: kept });
  } catch {
    throw new Error("the browser has no room for this bundle; the one before stays in use");
  }
  const { damaged, ...current } = await settings();
  await save({ ...current, bundle: "imported" });
  devicePromise = null;
}

// ---- What sites saw -------------------------------------------------------------------------------------------------

async function seenBy(site) {
  const name = `seen ${site}`;
  return (await storage.session.get(name))[name] ?? { reports: [], given: 0, tags: [] };
}

// `tags` tell which reports were drawn; their number is the number of reports that are independent of each other.
async function remember(site, { position, by, metres, tag }, at) {
  const seen = await seenBy(site);
  seen.given++;
  if (!seen.tags.includes(tag)) {
    seen.tags = [...seen.tags, tag].slice(-MOST_TAGS);
    const { latitude, longitude, accuracy } = position.coords;
    seen.reports = [...seen.reports, { latitude, longitude, accuracy, by, metres, at }].slice(-MOST_SEEN);
  }
  await storage.session.set({ [`seen ${site}`]: seen });
}

async function countMore(site, count) {
  if (!Number.isSafeInteger(count) || count < 1 || count > 1e6) return;
  const seen = await seenBy(site);
  if (seen.given) await storage.session.set({ [`seen ${site}`]: { ...seen, given: seen.given + count } });
}

// ---- Questions ------------------------------------------------------------------------------------------------------

// The address of the page that a frame stands in: all frames of a page share its rule and its reports.
function pageOf({ tab, frameId, origin, url }) {
  if (frameId === 0) return origin && origin !== "null" ? origin : url;
  return hostOf(tab?.url) ? tab.url : origin;
}

const ofPages = {
  async decide({ asks }, sender) {
    const all = await settings(), host = hostOf(pageOf(sender));
    const { rule } = ruleFor(all, host, await paused());
    const said = { rule: rule === "fixed" ? "hide" : rule, by: "browser" };
    if (!host || !byUs(all, host)) return said;
    const leave = await leaveFor(all, host);
    if (asks && leave === "prompt" && rule !== "refuse") inTurn(() => markAsking(host, sender.tab)).catch(() => {});
    return { ...said, by: "extension", leave };
  },
  locate: ({ question }, { tab }) => tabs.sendMessage(tab.id, { kind: "locate", question }, { frameId: 0 }),
  // Of a place that the page's own leave gave, or of ours, which a fixed place does not need.
  async report({ place, question }, sender) {
    const page = pageOf(sender), host = hostOf(page), site = siteOf(page), now = Date.now();
    const all = await settings();
    const rule = ruleFor(all, host, await paused());
    if (rule.rule === "refuse") return {};
    if (byUs(all, host)) {
      if ((await leaveFor(all, host)) !== "granted") return {};
      const found = rule.rule === "fixed" ? {} : await ourPlace(question);
      if (found.error || rule.rule === "off") return found;
      place = found.position?.coords;
    } else if (rule.rule === "off") return {};
    const { device } = await mechanism();
    const drawn = await report({ key: await key(), site, place, fixed: all.place, rule, device, now });
    inTurn(() => remember(site, drawn, now)).catch(() => {});
    return { position: drawn.position };
  },
  handed: ({ count }, sender) => inTurn(() => countMore(siteOf(pageOf(sender)), count)).then(() => ({})),
};

const ofOurPages = {
  // All that the popup shows of a site.
  async show({ url }) {
    const host = hostOf(url), site = siteOf(url), all = await settings(), isPaused = await paused();
    const { device, from, problem } = await mechanism();
    const rule = ruleFor(all, host, isPaused);
    const seen = site ? await seenBy(site) : null;
    const ours = host && byUs(all, host);
    return {
      host, site, rule, paused: isPaused, damaged: all.damaged,
      leave: ours ? (all.leave[host] ?? "ask") : null,
      asking: ours && (await isAsking(host)),
      browser: canClose ? await ourLeave() : null,
      open: ours && !(await isClosed(url)),
      chosen: rule.rule === "hide" || rule.rule === "fixed" ? mechanismFor({ metres: null, ...rule }, device) : null,
      bundle: bundleFacts(device, from, problem),
      seen: seen && { reports: seen.reports, drawn: seen.tags.length, kept: seen.given - seen.tags.length },
    };
  },
  async settings() {
    const { damaged, ...all } = await settings();
    const { device, from, problem } = await mechanism();
    return { settings: all, damaged, canClose, bundle: bundleFacts(device, from, problem) };
  },
  save: ({ settings }) => inTurn(async () => {
    await save(settings);
    devicePromise = null;
    return {};
  }),
  // The rule of an address; null gives it the default again.
  site: ({ url, rule }) => inTurn(async () => {
    const { damaged, ...all } = await settings();
    const host = hostOf(url), { [host]: _, ...others } = all.sites;
    if (rule === null || rule?.rule !== "off") delete others[siteOf(url)];
    await save({ ...all, sites: rule === null ? others : { ...others, [nameFor(host, checkedRule(rule))]: rule } });
    return {};
  }),
  // Whether the host of an address may ask: "granted", "denied", or "ask" again.
  leave: ({ url, leave }) => inTurn(async () => {
    const { damaged, ...all } = await settings();
    const host = hostOf(url), { [host]: _, ...others } = all.leave;
    const { asking = [] } = await storage.session.get("asking");
    await storage.session.set({ asking: asking.filter((one) => one !== host) });
    await save({ ...all, leave: leave === "ask" ? others : { ...others, [host]: leave } });
    return {};
  }),
  // The browser gave the extension leave, or took it.
  asked: () => changed().then(() => ({})),
  pause: ({ on }) => inTurn(async () => {
    await storage.session.set({ paused: on === true });
    await changed();
    return {};
  }),
  bundle: ({ files }) => inTurn(async () => {
    await importBundle(files);
    return {};
  }),
  forget: ({ site }) => inTurn(async () => {
    await storage.session.remove(`seen ${site}`);
    return {};
  }),
};

function bundleFacts(device, from, problem) {
  if (!device) return { from, problem };
  const { kind, solver, budget, to_come, region, accuracy_m, many_reports = null, made_for_reports = null } = device.manifest;
  return { from, problem, kind, solver, budget, to_come, region, accuracy_m, many_reports, made_for_reports, metres: budgetOf(device.manifest), keeping: keepingOf(device) };
}

runtime.onMessage.addListener((message, sender, reply) => {
  if (sender.id !== runtime.id) return false;
  const ours = sender.url?.startsWith(runtime.getURL(""));
  const answers = ours ? ofOurPages : ofPages;
  if (!Object.hasOwn(answers, message?.kind)) return false;
  // A document that is only prepared is not the page of its tab (Firefox does not name the state).
  if (!ours && (sender.documentLifecycle ?? "active") !== "active") return false;
  Promise.resolve(answers[message.kind](message, sender)).then(reply, (problem) => reply({ problem: problem.message }));
  return true;
});

// ---- The badge ------------------------------------------------------------------------------------------------------

const short = (metres) => (metres < 1000 ? `${Math.round(metres)}` : `${(metres / 1000).toFixed(metres < 10_000 ? 1 : 0)}k`);

async function badge({ id, url }) {
  const host = hostOf(url);
  const all = await settings(), rule = ruleFor(all, host, await paused());
  const looks = {
    hide: async () => {
      const { metres } = mechanismFor(rule, (await mechanism()).device);
      return [short(metres), "#00429d", `this site gets a report about ${short(metres).replace(/k?$/, (k) => ` ${k}m`)} off`];
    },
    fixed: () => ["pin", "#00429d", "this site gets a fixed place with noise"],
    refuse: () => ["no", "#555555", "this site gets no place"],
    off: () => ["TRUE", "#b30000", "this site gets your true place"],
  };
  if (host && byUs(all, host) && rule.rule !== "refuse") {
    if (all.leave[host] === "denied") looks[rule.rule] = looks.refuse;
    else if (await isAsking(host)) looks[rule.rule] = () => ["ask?", "#8a5a00", "this site asks for your location, and gets nothing until you answer"];
  }
  const [text, color, title] = host ? await looks[rule.rule]() : ["", "#555555", "no site"];
  await action.setBadgeText({ tabId: id, text });
  await action.setBadgeBackgroundColor({ tabId: id, color });
  await action.setTitle({ tabId: id, title: `sfumato: ${title}` });
}

tabs.onUpdated.addListener((_, change, tab) => change.status === "loading" && badge(tab).catch(() => {}));
tabs.onActivated.addListener(({ tabId }) => tabs.get(tabId).then(badge).catch(() => {}));
