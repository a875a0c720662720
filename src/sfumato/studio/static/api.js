// Talking to the studio's server. Addresses are relative, so the token in the page's own address goes along.

let session = null;
let entered;
const inside = new Promise((resolve) => { entered = resolve; }); // what is asked before the page has its session waits for it

async function answer(response) {
  let document = null;
  try {
    document = await response.json();
  } catch {
    document = null;
  }
  if (!response.ok || document === null) {
    throw new Error(document?.error ?? `the studio did not answer as expected (${response.status}); load the page again`);
  }
  return document;
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the studio does not answer; is `sfumato studio` still running?");
  }
  return response;
}

/** Enter with the session of this tab, if it was only loaded again. */
export async function enter() {
  const previous = sessionStorage.getItem("session");
  const body = JSON.stringify({ previous });
  const told = await answer(await send("api/session", { method: "POST", body }));
  session = told.session;
  sessionStorage.setItem("session", session);
  entered();
  return told;
}

/** The lines of streets that were named on the command line, each of latitudes and longitudes. */
export async function fetchStreets() {
  return answer(await send("api/streets"));
}

/** Load the page with the work of one that was closed. */
export function takeUp(left) {
  sessionStorage.setItem("session", left);
  location.reload();
}

/** Drop the work of a page that was closed. */
export async function discard(left) {
  return answer(await send("api/discard", { method: "POST", body: JSON.stringify({ session: left }) }));
}

/** Ask a question and get the answer; a mistake is thrown as one sentence. */
export async function ask(what, question = {}) {
  await inside;
  return answer(await send(`api/${session}/${what}`, { method: "POST", body: JSON.stringify(question) }));
}

export async function sendFile(file) {
  await inside;
  const path = `api/${session}/file?name=${encodeURIComponent(file.name)}`;
  return answer(await send(path, { method: "POST", body: file }));
}

/** The points of the data: x and y in metres and the number of the user, as typed arrays. */
export async function fetchPoints() {
  await inside;
  const response = await send(`api/${session}/points`);
  if (!response.ok) return answer(response);
  const bytes = await response.arrayBuffer();
  const count = bytes.byteLength / 12;
  return {
    x: new Float32Array(bytes, 0, count),
    y: new Float32Array(bytes, 4 * count, count),
    user: new Uint32Array(bytes, 8 * count, count),
  };
}

export function fileAddress(run, what) {
  return `api/${session}/files/${encodeURIComponent(run)}/${what}`;
}

/** Events of this page; `hear` gets each, `lost` is called with true while the stream is down. */
export function listen(hear, lost) {
  const source = new EventSource(`api/${session}/events`);
  source.onmessage = (event) => hear(JSON.parse(event.data));
  source.onopen = () => lost(false);
  source.onerror = () => lost(true);
  return source;
}

/** Points packed by the server: base64 of single precision, x and y in turn. */
export function unpack(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  const pairs = new Float32Array(bytes.buffer);
  const count = pairs.length / 2;
  const x = new Float32Array(count);
  const y = new Float32Array(count);
  for (let at = 0; at < count; at += 1) {
    x[at] = pairs[2 * at];
    y[at] = pairs[2 * at + 1];
  }
  return { x, y };
}
