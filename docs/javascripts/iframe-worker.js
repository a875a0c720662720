// Search in pages opened as files: a browser starts no worker for them, so its script runs in a
// hidden frame, under the name that the theme looks for.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    #waiting = [];
    #frame = document.createElement("iframe");

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...urls) => {
        for (const one of urls) await this.#load(one);
      };
      this.#load(url).then(() => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    #load(url) {
      const script = this.#frame.contentDocument.createElement("script");
      script.src = url;
      const loaded = new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
      });
      this.#frame.contentDocument.body.append(script);
      return loaded;
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
