// Beside the page, in a world that its scripts cannot reach: asks the browser for the place, hands it to the worker,
// and passes on what the worker says that the page is to see.  The browser's own prompt stays.

(() => {
  const { runtime } = globalThis.browser ?? globalThis.chrome;
  const AGE_MS = 10_000;
  const WAIT_MS = 60_000;
  const EVERY_MS = 60_000; // a watch looks again this often
  const EVERY_TRUE_MS = 5_000; // where protection is off
  const UNAVAILABLE = { error: { code: 2, message: "Position unavailable" } };
  const DENIED = { error: { code: 1, message: "User denied Geolocation" } };
  const ports = new Set();
  const watches = new Map();

  // Frames of the page's own origin ask through the page: our rule keeps the browser from answering them.
  function throughTop() {
    if (window === window.top) return false;
    try {
      return !!window.top.document;
    } catch {
      return false;
    }
  }

  function browsersPlace({ approximate, high }) {
    const options = { enableHighAccuracy: !!high, maximumAge: AGE_MS, timeout: WAIT_MS };
    if (approximate) options.accuracyMode = "approximate";
    return new Promise((resolve) => {
      const { geolocation } = navigator;
      if (!geolocation) return resolve(UNAVAILABLE);
      geolocation.getCurrentPosition(
        ({ coords, timestamp }) => {
          const { latitude, longitude, altitude, accuracy, altitudeAccuracy, heading, speed } = coords;
          resolve({ position: { coords: { latitude, longitude, altitude, accuracy, altitudeAccuracy, heading, speed }, timestamp } });
        },
        ({ code, message }) => resolve({ error: { code, message } }),
        options,
      );
    });
  }

  // The clock of a page's time-out starts when there is leave to answer, as the browser's does.
  async function whenAllowed(start) {
    const status = await navigator.permissions.query({ name: "geolocation" });
    if (status.state === "granted") start();
    else status.addEventListener("change", () => status.state === "granted" && start(), { once: true });
  }

  // What the page is to see: { position, keep } or { error }.  Whatever goes wrong, not the truth.
  async function answer(question, start = () => {}) {
    try {
      const { rule } = await runtime.sendMessage({ kind: "decide" });
      if (rule === "refuse") return DENIED;
      if (rule !== "hide" && rule !== "off") return UNAVAILABLE;
      whenAllowed(start).catch(start);
      const found = throughTop() ? await runtime.sendMessage({ kind: "locate", question }) : await browsersPlace(question);
      if (!found?.position) return found?.error ? { error: found.error } : UNAVAILABLE;
      if (rule === "off") return { position: found.position };
      const { latitude, longitude } = found.position.coords;
      const { position } = await runtime.sendMessage({ kind: "report", place: { latitude, longitude } });
      return position ? { position, keep: true } : UNAVAILABLE;
    } catch {
      return UNAVAILABLE;
    }
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

  async function heard(port, question) {
    const { kind, id } = question;
    if (kind === "one") {
      const start = () => port.postMessage({ id, more: true, started: true });
      port.postMessage({ id, ...(await answer(question, start)) });
    } else if (kind === "many") startWatch(port, question);
    else if (kind === "end") {
      watches.get(question.of)?.();
      watches.delete(question.of);
    } else if (kind === "state") {
      const found = await runtime.sendMessage({ kind: "decide" }).catch(() => ({}));
      port.postMessage({ id, state: found.rule === "refuse" ? "denied" : "as the browser says" });
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
    if (message.kind === "changed") for (const port of ports) port.postMessage({ forget: true });
    return false;
  });
})();
