// In the page's own world, before any of its scripts: every way to a position leads to the bridge.
//
// The browser's own functions that give a position are replaced in each realm that the page can reach, and are not
// kept: nothing in this file can obtain a true place, so nothing that the page takes from it can either.  What arrives
// over the port is what the page is to see.  Messages need no secrecy: to forge one gives a page what it gets anyway.
//
// The page may change any prototype after this file has run, so only what is captured here is used later, and objects
// that the engine looks things up in (traps, descriptors) have no prototype.  docs/decisions/0027 lists the doors.

(() => {
  "use strict";

  const SLOT_MS = 250; // answers leave at whole slots after the question: timing tells nothing of the place
  const MOST_STATUSES = 20; // of permissions, that hear of changes
  const FRESH_MS = 10_000; // a report is good for this long without asking again
  const HELLO = "sfumato";
  const ADOPT = "sfumato"; // on windows that were reached before their document: the browser reuses them for it

  // Left by a first run in this very window, which has what the page could not touch.
  if (Object.hasOwn(window, ADOPT)) {
    window[ADOPT]();
    return;
  }

  const { apply } = Reflect;
  const { defineProperty, getOwnPropertyDescriptor, hasOwn, create } = Object;
  const { Proxy, String, Number } = window;
  const { ceil, min, trunc } = Math;
  const later = window.setTimeout.bind(window);
  const never = window.clearTimeout.bind(window);
  const report = window.reportError.bind(window);
  const clock = performance.now.bind(performance);

  // An object whose methods the page cannot take from under us.
  const sealed = (object, ...names) => {
    for (let i = 0; i < names.length; i++) defineProperty(object, names[i], { __proto__: null, value: object[names[i]] });
    return object;
  };
  const weakMap = () => sealed(new WeakMap(), "get", "set", "has", "delete");
  const map = () => sealed(new Map(), "get", "set", "delete");
  const push = (list, value) => defineProperty(list, list.length, { __proto__: null, value });

  const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name).get;
  const calls = (method) => (self, ...values) => apply(method, self, values);
  const connected = calls(getter(Node.prototype, "isConnected"));
  const ownerOf = calls(getter(Node.prototype, "ownerDocument"));
  const typeOf = calls(getter(Node.prototype, "nodeType"));
  const parentOf = calls(getter(Node.prototype, "parentNode"));
  const addedTo = calls(getter(MutationRecord.prototype, "addedNodes"));
  const changedIn = calls(getter(MutationRecord.prototype, "target"));
  const kindOf = calls(getter(MutationRecord.prototype, "type"));
  const nameOf = calls(getter(Element.prototype, "localName"));
  const viewOf = calls(getter(Document.prototype, "defaultView"));
  const lengthOf = calls(getter(NodeList.prototype, "length"));
  const find = calls(Element.prototype.querySelectorAll);
  const findInFragment = calls(DocumentFragment.prototype.querySelectorAll);
  const attribute = calls(Element.prototype.getAttribute);
  const setAttribute = calls(Element.prototype.setAttribute);
  const removeAttribute = calls(Element.prototype.removeAttribute);
  const listen = calls(EventTarget.prototype.addEventListener);
  const dispatch = calls(EventTarget.prototype.dispatchEvent);
  const stop = calls(Event.prototype.stopImmediatePropagation);
  const targetOf = calls(getter(Event.prototype, "target"));
  const then = calls(Promise.prototype.then);
  const post = calls(MessagePort.prototype.postMessage);
  const dataOf = calls(getter(MessageEvent.prototype, "data"));
  const matches = calls(RegExp.prototype.exec);
  const lower = calls(String.prototype.toLowerCase);
  const substitute = calls(RegExp.prototype[Symbol.replace]);
  const within = calls(String.prototype.indexOf);
  const cut = calls(String.prototype.slice);
  const inert = calls(DOMImplementation.prototype.createHTMLDocument);
  const implementationOf = calls(getter(Document.prototype, "implementation"));
  const elementNS = calls(Document.prototype.createElementNS);
  const namespaceOf = calls(getter(Element.prototype, "namespaceURI"));
  const fragment = calls(Document.prototype.createDocumentFragment);
  const appendTo = calls(Node.prototype.appendChild);
  const firstOf = calls(getter(Node.prototype, "firstChild"));
  const replaceAll = calls(Element.prototype.replaceChildren);
  const replaceSelf = calls(Element.prototype.replaceWith);
  const putBefore = calls(Element.prototype.before);
  const putFirst = calls(Element.prototype.prepend);
  const putLast = calls(Element.prototype.append);
  const putAfter = calls(Element.prototype.after);
  const replaceAllIn = calls(DocumentFragment.prototype.replaceChildren);

  const FRAMES = "iframe, frame";
  const LATE_FRAMES = { __proto__: null, object: "data", embed: "src" };
  const ACTIVE = "script, iframe, frame";
  const some = (list) => lengthOf(list) > 0;

  const texts = weakMap(); // of replaced functions
  const nativeText = calls(Function.prototype.toString);
  const values = weakMap(); // of positions, coordinates, errors, permissions and elements that we made or changed

  // A function in place of another; its traps have no prototype that the page could put a trap on.
  function replaced(original, rule) {
    const made = new Proxy(original, { __proto__: null, apply: (target, self, given) => rule(target, self, given) });
    texts.set(made, nativeText(original));
    return made;
  }

  function replaceMethod(holder, name, rule) {
    const found = holder && getOwnPropertyDescriptor(holder, name);
    if (typeof found?.value !== "function") return;
    defineProperty(holder, name, { __proto__: null, ...found, value: replaced(found.value, rule) });
  }

  function replaceAccessor(holder, name, { get, set }) {
    const found = holder && getOwnPropertyDescriptor(holder, name);
    if (!found) return;
    const changed = { __proto__: null, ...found };
    if (get && found.get) changed.get = replaced(found.get, get);
    if (set && found.set) changed.set = replaced(found.set, set);
    defineProperty(holder, name, changed);
  }

  // ---- Realms -----------------------------------------------------------------------------------------------------

  const rooms = weakMap(); // what was built for a realm, by its Navigator

  // The frames of a window, also those in closed shadow trees, which the page reaches by number.
  function sweep(view) {
    if (!view) return;
    let count;
    try {
      count = view.length;
    } catch {
      return;
    }
    for (let i = 0; i < count; i++) enter(view[i]);
  }

  // Replaces what a window has, if the page can reach into it and nobody has been there.
  function enter(view) {
    let navigator, Geolocation;
    try {
      ({ navigator, Geolocation } = view);
    } catch {
      return; // of another origin: neither can the page
    }
    if (!navigator || !Geolocation || rooms.has(navigator) || hasOwn(view, ADOPT)) return;
    if (isOurs(Geolocation.prototype.clearWatch)) return;
    adoptable(view, build(view, here.desk));
  }

  // A window without a document of its own yet: the next run of this file in it finds what the page could not touch.
  const adoptable = (view, room) => defineProperty(view, ADOPT, { __proto__: null, value: () => settle(view, room) });

  // A replaced function of another run of this file is a proxy, which has no name of its own in its text.
  const isOurs = (method) => texts.has(method) || nativeText(method) === "function () { [native code] }";

  // ---- Answers ----------------------------------------------------------------------------------------------------

  // The line to the bridge of a document, and what came over it last.
  function newLink({ document, MessageChannel, MessageEvent }, forget) {
    const { port1, port2 } = new MessageChannel();
    const waiting = map();
    let count = 0;
    listen(port1, "message", (event) => {
      const answer = dataOf(event);
      if (answer.forget) return forget();
      const take = waiting.get(answer.id);
      if (!answer.more) waiting.delete(answer.id);
      take?.(answer);
    });
    port1.start();
    dispatch(document, new MessageEvent(HELLO, { __proto__: null, ports: [port2] }));
    return {
      __proto__: null,
      ask(question, take) {
        const id = ++count;
        waiting.set(id, take);
        post(port1, { ...question, id });
        return id;
      },
      tell: (word) => post(port1, word),
      end(id) {
        waiting.delete(id);
        post(port1, { kind: "end", of: id });
      },
    };
  }

  // What a document asks, for whoever asks in it.
  function newDesk(room) {
    const denied = room.origin === "null";
    let last = null, handed = 0, flushing = false, turn = 0;
    const link = newLink(room, () => {
      last = null;
      room.changed?.();
    });
    const tick = new room.MessageChannel();
    const soon = map();
    listen(tick.port1, "message", (event) => {
      const run = soon.get(dataOf(event));
      soon.delete(dataOf(event));
      run?.();
    });
    tick.port1.start();
    const promptly = (run) => {
      soon.set(++turn, run);
      post(tick.port2, turn);
    };
    // How many reports the page was given without a question to the worker; told once in a while.
    const countOne = () => {
      handed++;
      if (flushing) return;
      flushing = true;
      later(() => {
        flushing = false;
        if (handed) link.tell({ kind: "handed", count: handed });
        handed = 0;
      }, FRESH_MS);
    };
    const inSlot = (asked, run) => {
      const passed = clock() - asked;
      later(run, ceil((passed + 1) / SLOT_MS) * SLOT_MS - passed);
    };
    return {
      __proto__: null,
      // One position.  `done` gets { position } or { error }, never before the caller returns.
      one({ approximate, high, timeout }, done) {
        const asked = clock();
        if (denied) return void inSlot(asked, () => done({ error: { code: 1, message: "User denied Geolocation" } }));
        if (last && asked - last.at < FRESH_MS) {
          const { answer } = last;
          return void promptly(() => {
            countOne();
            done(answer);
          });
        }
        let over = false, timer;
        const finish = (answer) => {
          if (over) return;
          over = true;
          never(timer);
          done(answer);
        };
        link.ask({ kind: "one", approximate, high }, (answer) => {
          if (answer.started) {
            if (timeout < 2 ** 31) timer = later(() => finish({ error: { code: 3, message: "Timeout expired" } }), timeout);
            return;
          }
          if (answer.position && answer.keep) last = { at: clock(), answer };
          inSlot(asked, () => finish(answer));
        });
      },
      // Positions whenever the report changes; gives what ends it.
      many({ approximate, high }, each) {
        const asked = clock();
        if (denied) {
          inSlot(asked, () => each({ error: { code: 1, message: "User denied Geolocation" } }));
          return () => {};
        }
        let over = false;
        const id = link.ask({ kind: "many", approximate, high }, (answer) => {
          if (!answer.started) inSlot(asked, () => over || each(answer));
        });
        return () => {
          over = true;
          link.end(id);
        };
      },
      state: (done) => (denied ? done("denied") : link.ask({ kind: "state" }, (answer) => done(answer.state))),
    };
  }

  // ---- What is built in a realm -----------------------------------------------------------------------------------

  // `desk` answers for a window that has no bridge yet.
  function build(view, desk) {
    const { document, origin, MessageChannel, MessageEvent, MutationObserver, URL } = view;
    const observe = calls(MutationObserver.prototype.observe);
    const room = { __proto__: null, document, origin, MessageChannel, MessageEvent, URL, defined: false, heard: null, clicked: null, came: null, changed: null };
    room.desk = desk ?? newDesk(room);
    room.watch = (root, told) => observe(new MutationObserver(told), root, WATCHED);
    rooms.set(view.navigator, room);
    functionTexts(view);
    geolocation(view, room);
    permissions(view, room);
    element(view, room);
    attributes(view);
    insertions(view, room);
    windows(view);
    watch(view, room, document);
    return room;
  }

  // A window that was reached before its document has one now: with a bridge of its own.
  function settle(view, room) {
    const { document } = view;
    if (document === room.document) return;
    room.document = document;
    room.origin = view.origin;
    watch(view, room, document);
    room.desk = newDesk(room);
  }

  function functionTexts(view) {
    replaceMethod(view.Function.prototype, "toString", (original, self) => texts.get(self) ?? apply(original, self, []));
  }

  // Accessors that know the objects we made, and leave the browser's own alone.
  function made(holder, names) {
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      replaceAccessor(holder, name, {
        __proto__: null,
        get: (original, self) => (values.has(self) ? values.get(self)[name] : apply(original, self, [])),
      });
    }
  }

  const WATCHED = { __proto__: null, childList: true, subtree: true, attributes: true, attributeFilter: ["src", "data"] };
  const COORDINATES = ["latitude", "longitude", "altitude", "accuracy", "altitudeAccuracy", "heading", "speed"];

  function position(view, { coords, timestamp }) {
    const inner = create(view.GeolocationCoordinates.prototype), outer = create(view.GeolocationPosition.prototype);
    values.set(inner, coords);
    values.set(outer, { __proto__: null, coords: inner, timestamp });
    return outer;
  }

  function problem(view, { code, message }) {
    const found = create(view.GeolocationPositionError.prototype);
    values.set(found, { __proto__: null, code, message });
    return found;
  }

  function geolocation(view, room) {
    const { Geolocation, GeolocationPosition, GeolocationCoordinates, GeolocationPositionError } = view;
    made(GeolocationCoordinates.prototype, COORDINATES);
    made(GeolocationPosition.prototype, ["coords", "timestamp"]);
    made(GeolocationPositionError.prototype, ["code", "message"]);
    replaceMethod(GeolocationCoordinates.prototype, "toJSON", (original, self) => (values.has(self) ? { ...values.get(self) } : apply(original, self, [])));
    replaceMethod(GeolocationPosition.prototype, "toJSON", (original, self) => {
      if (!values.has(self)) return apply(original, self, []);
      const { coords, timestamp } = values.get(self);
      return { coords: { ...values.get(coords) }, timestamp };
    });

    const own = view.navigator.geolocation;
    const watches = map();
    let count = 0;
    const deliver = (success, failure) => (answer) => {
      try {
        if (answer.position) success(position(view, answer.position));
        else failure?.(problem(view, answer.error));
      } catch (thrown) {
        report(thrown);
      }
    };
    const taken = (name, self, given) => {
      const success = given[0], failure = given[1], options = given[2];
      const say = (what) => new view.TypeError(`Failed to execute '${name}' on 'Geolocation': ${what}`);
      if (self !== own) throw new view.TypeError("Illegal invocation");
      if (given.length === 0) throw say("1 argument required, but only 0 present.");
      if (typeof success !== "function") throw say("parameter 1 is not of type 'Function'.");
      if (failure !== undefined && failure !== null && typeof failure !== "function") throw say("parameter 2 is not of type 'Function'.");
      if (options !== undefined && options !== null && typeof options !== "object" && typeof options !== "function") throw say("parameter 3 is not of type 'PositionOptions'.");
      const wanted = options?.accuracyMode;
      const mode = wanted === undefined ? "precise" : `${wanted}`;
      if (mode !== "precise" && mode !== "approximate") throw say(`Failed to read the 'accuracyMode' property from 'PositionOptions': The provided value '${mode}' is not a valid enum value of type AccuracyMode.`);
      const high = !!options?.enableHighAccuracy, wait = options?.timeout;
      const milliseconds = wait === undefined ? Infinity : Number(wait);
      const timeout = milliseconds >= 0 ? milliseconds : 0;
      return { __proto__: null, deliver: deliver(success, failure), timeout, approximate: mode === "approximate", high };
    };
    replaceMethod(Geolocation.prototype, "getCurrentPosition", (_, self, given) => {
      const asked = taken("getCurrentPosition", self, given);
      room.desk.one(asked, asked.deliver);
    });
    replaceMethod(Geolocation.prototype, "watchPosition", (_, self, given) => {
      const asked = taken("watchPosition", self, given);
      watches.set(++count, room.desk.many(asked, asked.deliver));
      return count;
    });
    replaceMethod(Geolocation.prototype, "clearWatch", (_, self, given) => {
      if (self !== own) throw new view.TypeError("Illegal invocation");
      const key = trunc(Number(given[0]));
      watches.get(key)?.();
      watches.delete(key);
    });
  }

  function permissions(view, room) {
    const { Permissions, PermissionStatus } = view;
    if (!Permissions) return;
    made(PermissionStatus.prototype, ["state"]);
    const nameIs = calls(getter(PermissionStatus.prototype, "name"));
    const known = []; // statuses that the page holds: the last ones
    let count = 0;
    const tell = (status, then) =>
      room.desk.state((state) => {
        const before = values.get(status)?.state ?? null;
        if (state === null) values.delete(status); // as the browser says
        else values.set(status, { __proto__: null, state });
        then(before !== state);
      });
    room.changed = () => {
      for (let i = 0; i < known.length; i++) tell(known[i], (other) => other && dispatch(known[i], new view.Event("change")));
    };
    replaceMethod(Permissions.prototype, "query", (original, self, given) =>
      then(apply(original, self, given), (status) => {
        if (nameIs(status) !== "geolocation") return status;
        defineProperty(known, count++ % MOST_STATUSES, { __proto__: null, value: status, configurable: true });
        return new view.Promise((resolve) => tell(status, () => resolve(status)));
      }),
    );
  }

  // The <geolocation> element: its own event is stopped, and another one follows when there is a report.
  function element(view, room) {
    const { HTMLGeolocationElement } = view;
    if (!HTMLGeolocationElement) return;
    const valid = calls(getter(HTMLGeolocationElement.prototype, "isValid"));
    const ours = weakMap();
    const isElement = (target) => {
      try {
        return valid(target) !== undefined;
      } catch {
        return false;
      }
    };
    replaceAccessor(HTMLGeolocationElement.prototype, "position", {
      __proto__: null,
      get(_, self) {
        valid(self); // throws for what is no such element
        return values.get(self) ?? null;
      },
    });
    room.heard = (event) => {
      const target = targetOf(event);
      if (ours.has(event) || !isElement(target)) return;
      stop(event);
      give(target);
    };
    const give = (target) =>
      room.desk.one({ approximate: attribute(target, "accuracymode") === "approximate", timeout: Infinity }, (answer) => {
        if (!answer.position) return;
        values.set(target, position(view, answer.position));
        const event = new view.Event("location");
        ours.set(event, true);
        dispatch(target, event);
      });
    // Where the browser itself denies sites a place, an element has no event of its own: a click asks, and
    // `autolocate` where there is leave already.
    room.clicked = (event) => {
      const target = targetOf(event);
      if (event.isTrusted && isElement(target)) room.desk.state((state) => (state === "granted" || state === "prompt") && give(target));
    };
    const served = weakMap();
    room.came = (node) => {
      if (nameOf(node) !== "geolocation" || attribute(node, "autolocate") === null || served.has(node)) return;
      served.set(node, true);
      room.desk.state((state) => state === "granted" && give(node));
    };
  }

  // ---- Ways to a new realm ----------------------------------------------------------------------------------------

  // A tree in which frames can appear: its parser, its load events, its <geolocation> elements.
  function watch(view, room, root) {
    const look = (event) => {
      const target = targetOf(event);
      if (target !== view) sweep(view);
    };
    listen(root, "load", look, true);
    listen(root, "input", look, true);
    if (room.heard) {
      listen(root, "location", room.heard, true);
      listen(root, "click", room.clicked, true);
    }
    room.watch(root, (records) => {
      for (let i = 0; i < records.length; i++) {
        if (kindOf(records[i]) === "attributes") late(changedIn(records[i]));
        const added = addedTo(records[i]);
        for (let k = 0, n = lengthOf(added); k < n; k++) {
          lateIn(added[k]);
          cameIn(room, added[k]);
          denyIn(pendingIn([added[k]]).frames);
        }
      }
      sweep(view);
    });
  }

  const underway = weakMap();

  // The frame of an <object> or <embed> comes later, at no moment that anybody is told of: it starts as about:blank,
  // where this file runs first, and goes on to its address from there.
  function late(node) {
    if (typeOf(node) !== 1) return;
    const name = LATE_FRAMES[nameOf(node)];
    if (!name || !connected(node)) return;
    const address = attribute(node, name);
    if (!address || address === "about:blank" || underway.get(node) === address) return;
    underway.set(node, address);
    setAttribute(node, name, "about:blank");
    listen(node, "load", (event) => {
      stop(event);
      if (attribute(node, name) === "about:blank") setAttribute(node, name, address);
    }, { __proto__: null, once: true, capture: true });
  }

  function lateIn(node) {
    late(node);
    if (typeOf(node) !== 1) return;
    const found = find(node, "object, embed");
    for (let i = 0, n = lengthOf(found); i < n; i++) late(found[i]);
  }

  function cameIn(room, node) {
    if (!room.came || typeOf(node) !== 1) return;
    room.came(node);
    const found = find(node, "geolocation[autolocate]");
    for (let i = 0, n = lengthOf(found); i < n; i++) room.came(found[i]);
  }

  const inNode = (node, selector) => {
    const type = typeOf(node);
    return type === 1 ? find(node, selector) : type === 11 ? findInFragment(node, selector) : null;
  };

  // Frames with an address that stand in these nodes: the page could reach their windows before a document is there.
  function pendingIn(nodes) {
    const found = [];
    let active = 0;
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (typeof node !== "object" || node === null) continue;
      const type = typeOf(node);
      if (type === 1) {
        const name = nameOf(node);
        if (name === "iframe" || name === "frame") push(found, node);
        if (name === "iframe" || name === "frame" || name === "script" || within(name, "-") > 0) active++;
      }
      const frames = inNode(node, FRAMES);
      if (!frames || !some(frames)) continue;
      for (let k = 0, n = lengthOf(frames); k < n; k++) push(found, frames[k]);
      active += lengthOf(inNode(node, ACTIVE));
      const all = inNode(node, "*");
      for (let k = 0, n = lengthOf(all); k < n; k++) if (within(nameOf(all[k]), "-") > 0) active++;
    }
    return { frames: found, active };
  }

  // ---- Frames have no position of their own -----------------------------------------------------------------------
  //
  // A frame's next document is reachable before any script of ours runs in it.  So the browser itself is told not to
  // give frames of this origin a position (they get theirs through the page), by the frame's `allow`.  A frame of
  // another origin that the page allows keeps its leave: the page cannot reach into it.

  const NONE = "geolocation 'none'";
  const NAMES_IT = /(^|;)\s*geolocation(?=[\s;]|$)[^;]*/gi;

  // The origin that a page's `allow` lets have a position; null where it is the page's own or none.
  function letIn(frame, wanted) {
    NAMES_IT.lastIndex = 0;
    const found = matches(NAMES_IT, wanted);
    const address = attribute(frame, "src");
    if (!found || within(found[0], "'none'") >= 0 || !address || attribute(frame, "srcdoc") !== null) return null;
    const { origin } = new here.URL(address, here.document.baseURI);
    return origin === "null" || origin === here.origin ? null : origin;
  }

  const wants = weakMap(); // what the page put into `allow`, by frame

  function deny(frame) {
    const now = attribute(frame, "allow") ?? "";
    const wanted = wants.get(frame)?.set === now ? wants.get(frame).wanted : now;
    let origin = null;
    try {
      origin = letIn(frame, wanted);
    } catch {
      // an address that is none
    }
    NAMES_IT.lastIndex = 0;
    const rest = substitute(NAMES_IT, wanted, "");
    const set = `${origin ? `geolocation ${origin}` : NONE}${rest ? `; ${rest}` : ""}`;
    if (set === now) return;
    wants.set(frame, { __proto__: null, wanted, set });
    setAttribute(frame, "allow", set);
  }

  function denyIn(nodes) {
    for (let i = 0; i < nodes.length; i++) if (nameOf(nodes[i]) === "iframe") deny(nodes[i]);
  }

  // Whatever changes attributes is followed by ours.
  function attributes(view) {
    const { Element, HTMLIFrameElement, NamedNodeMap, Attr, Node } = view;
    const owner = calls(getter(Attr.prototype, "ownerElement"));
    const settled = (element) => {
      if (typeof element === "object" && element !== null && typeOf(element) === 1 && nameOf(element) === "iframe") deny(element);
    };
    const after = (original, self, given) => {
      const result = apply(original, self, given);
      settled(self);
      return result;
    };
    const afterAttribute = (original, self, given) => {
      const result = apply(original, self, given);
      if (typeOf(self) === 2) settled(owner(self));
      return result;
    };
    // An attribute's element is known before it is taken away, or after it was put there.
    const afterMap = (original, self, given) => {
      const element = self.length ? owner(self[0]) : null;
      const result = apply(original, self, given);
      settled(element);
      if (self.length) settled(owner(self[0]));
      return result;
    };
    const names = ["setAttribute", "setAttributeNS", "removeAttribute", "removeAttributeNS", "toggleAttribute", "setAttributeNode", "setAttributeNodeNS", "removeAttributeNode"];
    for (let i = 0; i < names.length; i++) replaceMethod(Element.prototype, names[i], after);
    const inMap = ["setNamedItem", "setNamedItemNS", "removeNamedItem", "removeNamedItemNS"];
    for (let i = 0; i < inMap.length; i++) replaceMethod(NamedNodeMap.prototype, inMap[i], afterMap);
    replaceAccessor(HTMLIFrameElement.prototype, "allow", { __proto__: null, set: after });
    replaceAccessor(Attr.prototype, "value", { __proto__: null, set: afterAttribute });
    replaceAccessor(Node.prototype, "nodeValue", { __proto__: null, set: afterAttribute });
    replaceAccessor(Node.prototype, "textContent", { __proto__: null, set: afterAttribute });
    const created = (original, self, given) => {
      const result = apply(original, self, given);
      settled(result);
      return result;
    };
    replaceMethod(view.Document.prototype, "createElement", created);
    replaceMethod(view.Document.prototype, "createElementNS", created);
  }

  const PENDING = ["src", "srcdoc"];

  // Puts nodes into a document.  Where scripts, callbacks or load events could run between a frame's coming and our
  // return, the frame comes empty (this file then runs in it at once) and gets its address afterwards.
  function inserting(room, place, nodes, run) {
    if (!connected(place)) return run();
    const { frames, active } = pendingIn(nodes);
    const view = viewOf(typeOf(place) === 9 ? place : ownerOf(place));
    if (frames.length === 0) {
      const result = run();
      if (lateWanted(nodes)) for (let i = 0; i < nodes.length; i++) if (typeof nodes[i] === "object") lateIn(nodes[i]);
      return result;
    }
    const held = [];
    denyIn(frames);
    if (active > 1 || room.defined) {
      for (let i = 0; i < frames.length; i++) {
        for (let k = 0; k < PENDING.length; k++) {
          const value = attribute(frames[i], PENDING[k]);
          if (value === null) continue;
          push(held, { __proto__: null, frame: frames[i], name: PENDING[k], value });
          removeAttribute(frames[i], PENDING[k]);
          listen(frames[i], "load", stop, { __proto__: null, once: true, capture: true });
        }
      }
    }
    try {
      return run();
    } finally {
      for (let i = 0; i < held.length; i++) setAttribute(held[i].frame, held[i].name, held[i].value);
      sweep(view);
    }
  }

  const lateWanted = (nodes) => {
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (typeof node !== "object" || node === null) continue;
      if (typeOf(node) === 1 && nameOf(node) in LATE_FRAMES) return true;
      const found = inNode(node, "object, embed");
      if (found && some(found)) return true;
    }
    return false;
  };

  const FRAME_TAG = /<(?:i?frame|object|embed)/gi;
  const tags = (text) => {
    FRAME_TAG.lastIndex = 0;
    let count = 0;
    while (matches(FRAME_TAG, text)) count++;
    return count;
  };

  function insertions(view, room) {
    const { Node, Element, Document, DocumentFragment, CharacterData, DocumentType, ShadowRoot, Range } = view;
    // Which of the given values are nodes that go in, and where.
    const nodesOf = { __proto__: null, appendChild: 1, insertBefore: 1, replaceChild: 1, moveBefore: 1 };
    const method = (holder, name) => {
      replaceMethod(holder, name, (original, self, given) => {
        const nodes = nodesOf[name] ? [given[0]] : given;
        const go = () => apply(original, self, given);
        let known = true;
        try {
          typeOf(self);
          for (let i = 0; i < nodes.length; i++) if (typeof nodes[i] === "object" && nodes[i] !== null) typeOf(nodes[i]);
        } catch {
          known = false; // not nodes: the browser will say so
        }
        return known ? inserting(room, self, nodes, go) : go();
      });
    };
    const methods = (holders, names) => {
      for (let i = 0; i < holders.length; i++) for (let k = 0; k < names.length; k++) method(holders[i].prototype, names[k]);
    };
    methods([Node], ["appendChild", "insertBefore", "replaceChild"]);
    methods([Element, Document, DocumentFragment], ["append", "prepend", "replaceChildren", "moveBefore"]);
    methods([Element, CharacterData, DocumentType], ["before", "after", "replaceWith"]);

    // One node, somewhere in the method's arguments.
    const single = (holder, name, index, place = (self) => self) =>
      replaceMethod(holder, name, (original, self, given) => {
        const go = () => apply(original, self, given);
        let where;
        try {
          typeOf(given[index]);
          where = place(self);
          typeOf(where);
        } catch {
          return go();
        }
        return inserting(room, where, [given[index]], go);
      });
    single(Element.prototype, "insertAdjacentElement", 1);
    const start = calls(getter(Range.prototype, "commonAncestorContainer"));
    single(Range.prototype, "insertNode", 0, start);
    single(Range.prototype, "surroundContents", 0, start);
    single(view.HTMLSelectElement.prototype, "add", 0);

    const setter = (holder, name) =>
      replaceAccessor(holder, name, {
        __proto__: null,
        set(original, self, given) {
          const value = given[0];
          const go = () => apply(original, self, given);
          if (typeof value !== "object" || value === null) return go();
          try {
            typeOf(value), typeOf(self);
          } catch {
            return go();
          }
          return inserting(room, self, [value], go);
        },
      });
    setter(Document.prototype, "body");
    setter(view.HTMLTableElement.prototype, "caption");
    setter(view.HTMLTableElement.prototype, "tHead");
    setter(view.HTMLTableElement.prototype, "tFoot");

    // Text that becomes nodes.
    const swept = (original, self, given) => {
      try {
        return apply(original, self, given);
      } finally {
        sweep(view);
      }
    };
    const put = {
      __proto__: null,
      innerHTML: (self, made) => (typeOf(self) === 11 ? replaceAllIn : replaceAll)(self, made),
      setHTMLUnsafe: (self, made) => (typeOf(self) === 11 ? replaceAllIn : replaceAll)(self, made),
      outerHTML: replaceSelf,
      beforebegin: putBefore,
      afterbegin: putFirst,
      beforeend: putLast,
      afterend: putAfter,
    };
    const parse = calls(Object.getOwnPropertyDescriptor(view.Element.prototype, "innerHTML").set);
    const parseShadows = view.Element.prototype.setHTMLUnsafe && calls(view.Element.prototype.setHTMLUnsafe);
    // `rule` says where the nodes go; `context` in what element the text is read.
    const text = (original, self, given, value, rule, context, options) => {
      const go = () => apply(original, self, given);
      if (!context || !connected(self)) return go();
      const count = tags(`${value}`);
      if (count === 0) return go();
      if (count === 1 && !room.defined) {
        try {
          return go();
        } finally {
          sweep(viewOf(ownerOf(self)));
          const found = inNode(context, "iframe, object, embed");
          for (let i = 0, n = lengthOf(found); i < n; i++) {
            late(found[i]);
            if (nameOf(found[i]) === "iframe") deny(found[i]);
          }
        }
      }
      const owner = ownerOf(self);
      const holder = typeOf(context) === 1 ? elementNS(inert(implementationOf(owner), ""), namespaceOf(context), nameOf(context)) : elementNS(inert(implementationOf(owner), ""), "http://www.w3.org/1999/xhtml", "div");
      if (rule === "setHTMLUnsafe") parseShadows(holder, value, options);
      else parse(holder, value);
      const moved = fragment(owner);
      for (let child = firstOf(holder); child; child = firstOf(holder)) appendTo(moved, child);
      return inserting(room, self, [moved], () => void put[rule](self, moved));
    };
    // The browser answers what is not of the right kind.
    const guarded = (original, self, given, run) => {
      try {
        typeOf(self);
      } catch {
        return apply(original, self, given);
      }
      return run();
    };
    for (let i = 0; i < 2; i++) {
      const holder = i ? ShadowRoot : Element;
      replaceAccessor(holder.prototype, "innerHTML", { __proto__: null, set: (original, self, given) => guarded(original, self, given, () => text(original, self, given, given[0], "innerHTML", self)) });
      replaceMethod(holder.prototype, "setHTMLUnsafe", (original, self, given) => guarded(original, self, given, () => text(original, self, given, given[0], "setHTMLUnsafe", self, given[1])));
    }
    const parentElement = (self) => {
      const found = parentOf(self);
      return found && typeOf(found) === 1 ? found : null;
    };
    replaceAccessor(Element.prototype, "outerHTML", { __proto__: null, set: (original, self, given) => guarded(original, self, given, () => text(original, self, given, given[0], "outerHTML", parentElement(self))) });
    replaceMethod(Element.prototype, "insertAdjacentHTML", (original, self, given) =>
      guarded(original, self, given, () => {
        const where = lower(`${given[0]}`);
        const outside = where === "beforebegin" || where === "afterend";
        if (!(where in put)) return apply(original, self, given);
        return text(original, self, given, given[1], where, outside ? parentElement(self) : self);
      }),
    );
    replaceMethod(Document.prototype, "execCommand", swept);
    replaceMethod(view.HTMLOptionsCollection.prototype, "add", swept);

    // A text is written tag by tag, so that what one tag brings is seen to before the next.
    let tail = "";
    const write = (original, self, given) => {
      let all = "", plain = true;
      for (let i = 0; i < given.length; i++) {
        if (typeof given[i] !== "string") plain = false;
        else all += given[i];
      }
      const seen = tail + all;
      tail = cut(seen, -8);
      if (!plain || (tags(seen) === 0 && within(tail, "<") < 0)) return swept(original, self, given);
      const line = nameOfMethod(original) === "writeln" ? "\n" : "";
      for (let from = 0; from < all.length; ) {
        const at = within(all, ">", from);
        const to = at < 0 ? all.length : at + 1;
        apply(original, self, [cut(all, from, to) + (to === all.length ? line : "")]);
        sweep(view);
        sweep(viewOf(self));
        from = to;
      }
    };
    const nameOfMethod = (method) => getOwnPropertyDescriptor(method, "name").value;
    replaceMethod(Document.prototype, "write", write);
    replaceMethod(Document.prototype, "writeln", write);

    replaceMethod(view.CustomElementRegistry.prototype, "define", (original, self, given) => {
      room.defined = true;
      return apply(original, self, given);
    });
    replaceMethod(Element.prototype, "attachShadow", (original, self, given) => {
      const root = apply(original, self, given);
      watch(view, room, root);
      return root;
    });
  }

  function windows(view) {
    const inside = (original, self, given) => {
      const found = apply(original, self, given);
      if (found) enter(found);
      return found;
    };
    const documentInside = (original, self, given) => {
      const found = apply(original, self, given);
      if (found) enter(viewOf(found));
      return found;
    };
    const { HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement, HTMLEmbedElement } = view;
    const owners = [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement, HTMLEmbedElement];
    for (let i = 0; i < owners.length; i++) {
      replaceAccessor(owners[i].prototype, "contentWindow", { __proto__: null, get: inside });
      replaceAccessor(owners[i].prototype, "contentDocument", { __proto__: null, get: documentInside });
      replaceMethod(owners[i].prototype, "getSVGDocument", documentInside);
    }
    // A new window comes empty, where this file runs at once, and gets its address afterwards.
    replaceMethod(view, "open", (original, self, given) => {
      const address = given[0], target = given[1], features = given[2];
      const fresh = target === undefined || target === "" || target === "_blank";
      const alone = features !== undefined && matches(/noopener|noreferrer/i, `${features}`);
      if (address === undefined || `${address}` === "" || !fresh || alone) return inside(original, self, given);
      const link = new view.URL(`${address}`, view.document.baseURI).href;
      if (link === "about:blank" || matches(/^javascript:/i, link)) return inside(original, self, given);
      const found = apply(original, self, features === undefined ? ["about:blank", "_blank"] : ["about:blank", "_blank", features]);
      if (!found) return found;
      enter(found);
      found.location.replace(link);
      return found;
    });
    replaceMethod(view.Document.prototype, "open", (original, self, given) => {
      const found = apply(original, self, given);
      if (given.length > 2 && found) enter(found);
      return found;
    });
    replaceMethod(view.DocumentPictureInPicture?.prototype, "requestWindow", (original, self, given) =>
      then(apply(original, self, given), (found) => {
        enter(found);
        return found;
      }),
    );
  }

  // ---- Here -------------------------------------------------------------------------------------------------------

  const here = build(window);
  if (location.href === "about:blank") {
    adoptable(window, here);
    // The load event of an empty frame follows at once: frames beside it may be waiting for their documents.
    if (parent !== window) sweep(parent);
  }
  sweep(window);
})();
