// A document that nobody sees: it has the leave that the browser gave the extension, and answers its own pages.

const { runtime } = globalThis.browser ?? globalThis.chrome;

runtime.onMessage.addListener((message, sender, reply) => {
  if (message?.kind !== "place" || !sender.url?.startsWith(runtime.getURL(""))) return false;
  globalThis.browsersPlace(message.question).then(reply);
  return true;
});
