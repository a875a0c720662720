// Beside the page, in a world that its scripts cannot reach: asks the worker what the page is to see, and passes it on.
// Where the browser itself denies sites a place, the worker obtains it; elsewhere it is asked for here, with the
// browser's own prompt.

(() => {
  const { browsersPlace } = globalThis;
  const { runtime } = globalThis.browser ?? globalThis.chrome;
  const EVERY_MS = 60_000; // a watch looks again this often
  const EVERY_TRUE_MS = 5_000; // where protection is off
  const UNAVAILABLE = { error: { code: 2, message: "Position unavailable" } };
  const DENIED = { error: { code: 1, message: "User denied Geolocation" } };
  const ports = new Set();
  const watches = new Map();
  let change = Promise.withResolvers(); // of settings

  // Frames of the page's own origin ask through the page: our rule keeps the browser from answering them.
  function throughTop() {
    if (window === window.top) return false;
    try {
      return !!window.top.document;
    } catch {
      return false;
    }
  }

  // The clock of a page's time-out starts when there is leave to answer, as the browser's does.
  async function whenAllowed(start) {
    const status = await navigator.permissions.query({ name: "geolocation" });
    if (status.state === "granted") start();
    else status.addEventListener("change", () => status.state === "granted" && start(), { once: true });
  }

  // Whether the browser would let this document ask, were sites not denied: not without a secure address, not in a
  // sandbox, and not where a policy of the page forbids it.  (The policy of frames of the page's origin is ours.)
  function mayAsk() {
    const { featurePolicy } = throughTop() ? window.top.document : document;
    return window.isSecureContext && window.origin !== "null" && (featurePolicy?.allowsFeature("geolocation") ?? true);
  }

  // What was decided for this page, once it is: while a site waits for its user's leave, so does its question.
  async function decided() {
    for (;;) {
      const { promise } = change;
      const found = await runtime.sendMessage({ kind: "decide", asks: true });
      if (found.by === "browser" || found.rule === "refuse" || found.leave !== "prompt") return found;
      await promise;
    }
  }

  // What the page is to see: { position, keep } or { error }.  Whatever goes wrong, not the truth.
  async function answer(question, start = () => {}) {
    try {
      const ours = mayAsk();
      const { rule, by, leave } = ours ? await decided() : await runtime.sendMessage({ kind: "decide" });
      if (rule === "refuse" || (by === "extension" && !(ours && leave === "granted"))) return DENIED;
      if (rule !== "hide" && rule !== "off") return UNAVAILABLE;
      if (by === "extension") {
        start();
        return shown(await runtime.sendMessage({ kind: "report", question }), rule);
      }
      whenAllowed(start).catch(start);
      const found = throughTop() ? await runtime.sendMessage({ kind: "locate", question }) : await browsersPlace(question);
      if (rule === "off" || !found?.position) return shown(found, rule);
      const { latitude, longitude } = found.position.coords;
      return shown(await runtime.sendMessage({ kind: "report", place: { latitude, longitude } }), rule);
    } catch {
      return UNAVAILABLE;
    }
  }

  function shown({ position, error } = {}, rule) {
    if (!position) return error ? { error } : UNAVAILABLE;
    return rule === "off" ? { position } : { position, keep: true };
  }

  function startWatch(port, { id, ...question }) {
    let last = "", timer;
    const look = async () => {
      const found = document.hidden && last ? null : await answer(question);
      const text = JSON.stringify(found?.position?.coords ?? found?.error);
      if (found && text !== last && watches.has(id)) {
        last = text;
        port.postMessage({ id, more: true, ...found });
      }
      timer = setTimeout(look, found?.position && !found.keep ? EVERY_TRUE_MS : EVERY_MS);
    };
    watches.set(id, () => clearTimeout(timer));
    look();
  }

  // A page that is prepared before anybody looks at it is not the page of its tab: its questions wait.
  const shownToSomebody = document.prerendering
    ? new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }))
    : null;

  async function heard(port, question) {
    const { kind, id } = question;
    if (shownToSomebody) await shownToSomebody;
    if (kind === "one") {
      const start = () => port.postMessage({ id, more: true, started: true });
      port.postMessage({ id, ...(await answer(question, start)) });
    } else if (kind === "many") startWatch(port, question);
    else if (kind === "end") {
      watches.get(question.of)?.();
      watches.delete(question.of);
    } else if (kind === "state") {
      const { rule, by, leave } = await runtime.sendMessage({ kind: "decide" }).catch(() => ({ rule: "refuse" }));
      const ours = by === "extension" && (mayAsk() ? leave : "denied");
      port.postMessage({ id, state: rule === "refuse" ? "denied" : ours || null }); // null: as the browser says
    } else if (kind === "handed") runtime.sendMessage({ kind: "handed", count: question.count }).catch(() => {});
  }

  document.addEventListener(
    "sfumato",
    (event) => {
      const port = event.ports?.[0];
      if (!port) return;
      ports.add(port);
      port.onmessage = ({ data }) => heard(port, data);
    },
    true,
  );

  // The worker asks for the place that this page may have, or says that settings changed.
  runtime.onMessage.addListener((message, sender, reply) => {
    if (sender.id !== runtime.id) return false;
    if (message.kind === "locate") {
      browsersPlace(message.question ?? {}).then(reply);
      return true;
    }
    if (message.kind === "changed") {
      change.resolve();
      change = Promise.withResolvers();
      for (const port of ports) port.postMessage({ forget: true });
    }
    return false;
  });
})();
