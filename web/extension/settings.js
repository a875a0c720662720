// What each site gets: the settings as a value, checked whole, and written whole.

export const RULES = ["hide", "fixed", "refuse", "off"];
export const METRES = { least: 50, most: 50_000, usual: 500 };
export const LEAVES = ["granted", "denied"];
const MOST_SITES = 5_000;
export const FILES = "files on this machine";

// `metres: null` is the bundle's own budget, or METRES.usual without a bundle; `place` is what "fixed" gives.  `strict`:
// the browser gives no site a place itself, and `leave` says which hosts may ask us.
export const DEFAULTS = Object.freeze({
  version: 2,
  strict: true,
  leave: {},
  rest: { rule: "hide", metres: null },
  place: null,
  listed: "except",
  list: [],
  sites: {},
  bundle: "inside",
});

// The host of an address, whole; null for what is no site.
export function hostOf(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol === "file:") return FILES;
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  return url.hostname.replace(/\.+$/, "").toLowerCase() || null;
}

// The site that an address belongs to; null for what is no site.  Without a list of public suffixes this joins rather
// than splits: sites that share one are given the same reports, never more reports.  What gives the true place away
// goes by the whole host instead: hosts that are joined may be other people's.
export const siteOf = (address) => joined(hostOf(address));

function joined(host) {
  if (host === null || host === FILES) return host;
  if (/^[\d.]+$/.test(host) || host.startsWith("[")) return host;
  const labels = host.split(".");
  const country = labels.length > 2 && labels.at(-1).length === 2 && /^(?:.{1,3}|com|info|name)$/.test(labels.at(-2));
  return labels.slice(country ? -3 : -2).join(".") || null;
}

function fail(sentence) {
  throw new Error(sentence);
}

// One rule, or a sentence that says what is wrong with it.
export function checkedRule(value) {
  const { rule, metres = null } = value ?? {};
  if (!RULES.includes(rule)) fail(`a rule is one of ${RULES.join(", ")}; got ${JSON.stringify(rule)}`);
  const numeric = typeof metres === "number" && metres >= METRES.least && metres <= METRES.most;
  if (metres !== null && !numeric) fail(`metres are ${METRES.least} to ${METRES.most}; got ${JSON.stringify(metres)}`);
  return rule === "hide" || rule === "fixed" ? { rule, metres } : { rule };
}

function checkedPlace(place) {
  if (place === null || place === undefined) return null;
  const { latitude, longitude } = place;
  const sound = typeof latitude === "number" && Math.abs(latitude) <= 90 && typeof longitude === "number" && Math.abs(longitude) <= 180;
  if (!sound) fail("the fixed place is a latitude within 90 and a longitude within 180 degrees");
  return { latitude, longitude };
}

// The host that a person writes, as a host or an address: whole, never what it is joined to.
export function checkedSite(text) {
  const site = hostOf(/^[a-z]+:/i.test(text) ? text : `https://${text}`);
  if (typeof text !== "string" || !site || /\s/.test(text)) fail(`a site is a name like example.org; got ${JSON.stringify(text)}`);
  return site;
}

// Settings of version 1 could have an exception for a name that was joined (`github.io` for `alice.github.io`): each is
// now for that very host alone, so that nobody else below the name gets the true place.
function fromVersion1({ list, sites, ...others }) {
  const except = others.listed === "except" && Array.isArray(list);
  const exact = except ? Object.fromEntries(list.map((name) => [name, { rule: "off" }])) : {};
  return { ...others, version: 2, strict: true, leave: {}, list: except ? [] : list, sites: { ...exact, ...sites } };
}

export function checked(value) {
  if (value?.version === 1) return checked(fromVersion1(value));
  const { version, strict, leave, rest, place, listed, list, sites, bundle } = value ?? {};
  if (version !== DEFAULTS.version) fail(`settings of version ${JSON.stringify(version)} are not known; expected ${DEFAULTS.version}`);
  if (!["except", "only"].includes(listed)) fail(`a list is "except" or "only"; got ${JSON.stringify(listed)}`);
  if (!["inside", "imported", "none"].includes(bundle)) fail(`a bundle is inside, imported or none; got ${JSON.stringify(bundle)}`);
  if (typeof strict !== "boolean") fail(`strict is true or false; got ${JSON.stringify(strict)}`);
  const named = Object.entries(sites ?? {}), asked = Object.entries(leave ?? {});
  const wrong = asked.find(([, said]) => !LEAVES.includes(said));
  if (wrong) fail(`a site's permission to ask is one of ${LEAVES.join(", ")}; got ${JSON.stringify(wrong[1])}`);
  if (!Array.isArray(list) || list.length + named.length + asked.length > MOST_SITES) fail(`at most ${MOST_SITES} sites can be set`);
  const found = {
    version,
    strict,
    leave: Object.fromEntries(asked.map(([host, said]) => [checkedSite(host), said])),
    rest: checkedRule(rest),
    place: checkedPlace(place),
    listed,
    list: [...new Set(list.map(checkedSite))],
    sites: Object.fromEntries(named.map(([site, rule]) => [nameFor(checkedSite(site), rule ?? {}), checkedRule(rule)])),
    bundle,
  };
  if (!found.place && [found.rest, ...Object.values(found.sites)].some(({ rule }) => rule === "fixed")) fail("there is no fixed place yet; set one on the options page");
  return found;
}

// Under which name a host's rule is kept: the true place is for this host alone, all else for the hosts joined to it.
export const nameFor = (host, { rule }) => (rule === "off" ? host : joined(host));

// Whether a host is on the list.  Exceptions are the names as written and what is below them; a list of where to
// protect holds for all hosts that are joined to one of it.
function isListed({ listed, list }, host) {
  if (listed === "only") return list.some((name) => joined(name) === joined(host));
  return list.some((name) => host === name || (name.includes(".") && host.endsWith(`.${name}`)));
}

// The rule that was set for a host, or for the hosts joined to it; "off" only if it was set for this very host.
function ownRule({ sites }, host) {
  const names = [host, joined(host)].filter((name) => Object.hasOwn(sites, name));
  return names.map((name) => ({ name, ...sites[name] })).find(({ name, rule }) => rule !== "off" || name === host);
}

// What a host gets, and why.
export function ruleFor(settings, host, paused) {
  if (!host) return { rule: "refuse", why: "no site" };
  if (paused) return { rule: "off", why: "paused" };
  const own = ownRule(settings, host);
  if (own) {
    const { name, ...rule } = own;
    return { ...rule, why: "set for this site" };
  }
  const listed = isListed(settings, host);
  if (settings.listed === "except" ? listed : !listed) return { rule: "off", why: settings.listed === "except" ? "on the list of exceptions" : "not on the list" };
  return { ...settings.rest, why: "the default" };
}
