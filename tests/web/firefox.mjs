// Opens pages in Firefox, with an extension or without ("none"), and prints what their scripts put into `seen`.
//
// firefox.mjs FIREFOX FOLDER ADDRESS < {"name": "/path", ...}      (Node 22 or newer, for WebSocket)

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [firefox, folder, address] = process.argv.slice(2);
const pages = JSON.parse(readFileSync(0, "utf8"));
const { latitude, longitude } = pages.truth;
delete pages.truth;
const place = JSON.stringify({ location: { lat: latitude, lng: longitude }, accuracy: 5 });
const settings = {
  "geo.provider.network.url": `data:application/json,${place}`,
  "geo.provider.use_geoclue": false,
  "geo.provider.testing": true,
  "geo.prompt.testing": true,
  "geo.prompt.testing.allow": true,
  "datareporting.policy.dataSubmissionEnabled": false,
  "app.update.enabled": false,
};
const profile = mkdtempSync(join(tmpdir(), "firefox-"));
writeFileSync(join(profile, "user.js"), Object.entries(settings).map((pair) => `user_pref(${pair.map((part) => JSON.stringify(part)).join(", ")});\n`).join(""));
const browser = spawn(firefox, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], { env: { ...process.env, HOME: profile } });
process.on("exit", () => {
  browser.kill();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
});
const line = await new Promise((done, fail) => {
  let said = "";
  browser.stderr.on("data", (data) => {
    said += data;
    const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
    if (found) done(found[1]);
  });
  browser.on("exit", () => fail(new Error(said)));
});
const socket = new WebSocket(`${line}/session`);
await new Promise((done, fail) => Object.assign(socket, { onopen: done, onerror: fail }));
const waiting = new Map();
socket.onmessage = ({ data }) => {
  const { id, ...answer } = JSON.parse(data);
  waiting.get(id)?.(answer);
};
let count = 0;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const say = (method, params) => {
  socket.send(JSON.stringify({ id: ++count, method, params }));
  return Promise.race([new Promise((done) => waiting.set(count, done)), pause(60_000).then(() => ({}))]);
};
await say("session.new", { capabilities: {} });
if (folder !== "none") {
  const { message } = await say("webExtension.install", { extensionData: { type: "path", path: folder } });
  if (message) throw new Error(message);
  await pause(2000);
}
const found = {};
for (const [name, path] of Object.entries(pages)) {
  const { context } = (await say("browsingContext.create", { type: "tab" })).result;
  await say("browsingContext.navigate", { context, url: address + path, wait: "none" });
  let text = "[]";
  for (let tries = 0; tries < 25 && (text === "[]" || tries < 8); tries++) {
    await pause(200);
    const answer = await say("script.evaluate", { expression: "JSON.stringify(window.seen ?? [])", target: { context }, awaitPromise: false });
    text = answer.result?.result?.value ?? "[]";
  }
  found[name] = JSON.parse(text);
  await say("browsingContext.close", { context });
}
console.log(JSON.stringify(found));
process.exit(0);
