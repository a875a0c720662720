// A document that nobody sees: it has the leave that the browser gave the extension, and answers the worker.

(globalThis.browser ?? globalThis.chrome).runtime.onMessage.addListener((message, sender, reply) => {
  if (message?.kind !== "place" || sender.tab) return false;
  globalThis.browsersPlace(message.question).then(reply);
  return true;
});
