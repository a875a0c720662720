"""Pages that try to reach the true place past the extension, one way each.

A page's scripts put what they get into `seen` of the top window: [latitude, longitude], or what
went wrong.  `/never` is an address that does not answer, `/trickle` one that sends its headers long
before its body: both leave a window open to the page before a document is in it.

python -m tests.web.doors FOLDER            which ways an unpacked extension leaves open
python -m tests.web.doors FOLDER FIREFOX    the same in a Firefox, with Playwright's Node
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.web.extension import TRUTH, protected, serving_pages

_WAIT_S = 60.0

_PRELUDE = """
var seen = [];
function got(p) { seen.push([p.coords.latitude, p.coords.longitude]); }
function ask(view) {
  try { view.navigator.geolocation.getCurrentPosition(got, (e) => seen.push("error " + e.code)); }
  catch (problem) { seen.push("threw " + problem.name); }
}
var frame = (fill) => { const made = document.createElement("iframe"); fill?.(made); return made; };
var never = () => frame((made) => (made.src = "/never"));
var html = (text) => URL.createObjectURL(new Blob([text], { type: "text/html" }));
// Asks in the window of a frame the moment that it has another document, before that has its first tag.
function next(go, then = ask) {
  const f = frame();
  document.body.append(f);
  const view = f.contentWindow, before = view.document, { port1, port2 } = new MessageChannel();
  port1.onmessage = () => (view.document === before ? port2.postMessage(0) : then(view));
  go(f);
  port2.postMessage(0);
}
// The same for a frame that another element makes, once it has a first document; and in each that follows.
function later(made, name) {
  made[name] = html("<p>first");
  const wait = setInterval(() => {
    if (!window.length || !window[0].document.querySelector("p")) return;
    clearInterval(wait);
    let before = window[0].document;
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      if (window.length && window[0].document !== before) ask(window[0]), (before = window[0].document);
      if (!seen.length) port2.postMessage(0);
    };
    made[name] = html("<p>next");
    port2.postMessage(0);
  });
}
onmessage = (event) => event.data?.seen && seen.push(event.data.seen);
"""


def _page(body: str) -> str:
    return f"<!doctype html><script>{_PRELUDE}</script><body>{body}"


def _script(text: str) -> str:
    return _page(f"<script>{text}</script>")


_INNER = "<script>parent.ask(window)<\\/script>"
_TELL = (
    "navigator.geolocation.getCurrentPosition("
    "(p) => parent.postMessage({ seen: [p.coords.latitude, p.coords.longitude] }, '*'),"
    "(e) => parent.postMessage({ seen: 'error ' + e.code }, '*'))"
)

# Ways that give the true place where the extension is not there.
LEAKS: dict[str, str] = {
    "the first script of a page": "<!doctype html><script>var seen = [];"
    "navigator.geolocation.getCurrentPosition((p) => seen.push([p.coords.latitude,"
    " p.coords.longitude]), (e) => seen.push('error ' + e.code))</script>",
    "the instance's method": _script("ask(window)"),
    "the prototype's method": _script(
        "Geolocation.prototype.getCurrentPosition.call(navigator.geolocation, got)"
    ),
    "a watch": _script("navigator.geolocation.watchPosition(got)"),
    "a precise accuracyMode": _script(
        "navigator.geolocation.getCurrentPosition(got, null, { accuracyMode: 'precise',"
        " enableHighAccuracy: true, maximumAge: Infinity })"
    ),
    "the whole position as JSON": _script(
        "navigator.geolocation.getCurrentPosition((p) => { const c = p.toJSON().coords;"
        " seen.push([c.latitude, c.longitude]); })"
    ),
    "an empty frame at insertion": _script(
        "const f = frame(); document.body.append(f); ask(f.contentWindow)"
    ),
    "a waiting frame at insertion": _script(
        "const f = never(); document.body.append(f); ask(f.contentWindow)"
    ),
    "a waiting frame by its number": _script("document.body.append(never()); ask(window[0])"),
    "a waiting frame by its name": _script(
        "document.body.append(frame((f) => { f.name = 'zeta'; f.src = '/never'; })); ask(zeta)"
    ),
    "a waiting frame of another origin": _script(
        "document.body.append(frame((f) => (f.src = 'http://localhost:' + location.port +"
        " '/never'))); ask(window[0])"
    ),
    "a method of a fresh realm": _script(
        "document.body.append(never());"
        "window[0].Geolocation.prototype.getCurrentPosition.call(window[0].navigator.geolocation,"
        " got)"
    ),
    "a fresh realm's method on this page's object": _script(
        "document.body.append(never()); try {"
        "window[0].Geolocation.prototype.getCurrentPosition.call(navigator.geolocation, got) }"
        " catch { seen.push('threw') }"
    ),
    "srcdoc": _script(f"document.body.append(frame((f) => (f.srcdoc = `{_INNER}`)))"),
    "a blob frame": _script(f"document.body.append(frame((f) => (f.src = html(`{_INNER}`))))"),
    "a javascript frame": _script(
        "document.body.append(frame((f) => (f.src = 'javascript:parent.ask(window)')))"
    ),
    "frames that the parser makes": _page(
        "<iframe src=/never></iframe><script>ask(window[0])</script>"
    ),
    "a parsed frame seen from the load event of another": _page(
        "<iframe src=/never></iframe><iframe onload='ask(window[0])'></iframe>"
    ),
    "a parsed frame in a shadow tree": _page(
        "<div><template shadowrootmode=open><iframe src=/never></iframe>"
        "</template></div><script>const root = document.querySelector('div').shadowRoot;"
        "ask(root.querySelector('iframe').contentWindow)</script>"
    ),
    "a script that comes with the frame": _script(
        "const all = document.createDocumentFragment(), s = document.createElement('script');"
        "s.textContent = 'ask(window[0])'; all.append(never(), s); document.body.append(all)"
    ),
    "a load event that comes with the frame": _script(
        "const d = document.createElement('div'); document.body.append(d);"
        "d.innerHTML = '<iframe src=/never></iframe><iframe onload=\"ask(window[0])\"></iframe>'"
    ),
    "a callback of an element that comes with the frame": _script(
        "customElements.define('x-a', class extends HTMLElement {"
        " connectedCallback() { ask(window[0]); } });"
        "const d = document.createElement('div');"
        "d.append(never(), document.createElement('x-a')); document.body.append(d)"
    ),
    "a callback of an element that makes room for the frame": _script(
        "customElements.define('x-a', class extends HTMLElement {"
        " disconnectedCallback() { ask(window[0]); } });"
        "document.body.append(document.createElement('x-a'));"
        "document.body.replaceChildren(never())"
    ),
    "document.write": _script(
        "document.write('<iframe src=/never></iframe><script>ask(window[0])<\\/script>')"
    ),
    "document.write in pieces": _script(
        "document.write('<ifr'); document.write('ame src=/never></iframe><scr');"
        "document.write('ipt>ask(window[0])<\\/script>')"
    ),
    "insertAdjacentHTML": _script(
        "document.body.insertAdjacentHTML('beforeend', '<iframe src=/never></iframe>');"
        "ask(window[0])"
    ),
    "a range": _script(
        "const r = document.createRange(); r.selectNodeContents(document.body);"
        "r.insertNode(never()); ask(window[0])"
    ),
    "a new body": _script(
        "const b = document.createElement('body'); b.append(never());"
        "document.body = b; ask(window[0])"
    ),
    "a table's caption": _script(
        "const t = document.createElement('table'), c = document.createElement('caption');"
        "document.body.append(t); c.append(never()); t.caption = c; ask(window[0])"
    ),
    "a shadow tree": _script(
        "const d = document.createElement('div'); document.body.append(d);"
        "const root = d.attachShadow({ mode: 'closed' });"
        "root.innerHTML = '<iframe src=/never></iframe>'; ask(root.firstChild.contentWindow)"
    ),
    "an object that loads": _script(
        "const o = document.createElement('object'); o.data = '/never'; document.body.append(o);"
        "const t = setInterval(() => { if (window.length) { clearInterval(t); ask(window[0]); } })"
    ),
    "an embed that loads": _script(
        "const o = document.createElement('embed'); o.src = '/never'; document.body.append(o);"
        "const t = setInterval(() => { if (window.length) { clearInterval(t); ask(window[0]); } })"
    ),
    "a frame whose headers came before its body": _script(
        "const f = frame(); document.body.append(f); const w = f.contentWindow, d = w.document;"
        "f.src = '/trickle';"
        "const t = setInterval(() => { if (w.document !== d) { clearInterval(t); ask(w); } })"
    ),
    "a frame's next document from srcdoc, before its first tag": _script(
        "next((f) => (f.srcdoc = '<p>x'))"
    ),
    "a frame's next document from a blob, before its first tag": _script(
        "next((f) => (f.src = html('<p>x')))"
    ),
    "a frame's next document from the page's own service worker": _script(
        "navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready)"
        ".then(() => navigator.serviceWorker.controller ? next((f) => (f.src = '/served')) :"
        " location.reload())"
    ),
    "a frame's leave given back": _script(
        "next((f) => { f.removeAttribute('allow'); f.setAttribute('allow', 'geolocation');"
        " f.allow = 'geolocation *'; f.attributes.allow.value = 'geolocation';"
        " f.attributes.removeNamedItem('allow'); f.srcdoc = '<p>x'; })"
    ),
    "an option that brings a frame": _script(
        "const s = document.createElement('select'), o = document.createElement('option');"
        "document.body.append(s); o.append(never()); s[0] = o; ask(window[0])"
    ),
    "a fragment parsed elsewhere": _script(
        "const d = new DOMParser().parseFromString('<p><iframe src=/never></iframe>', 'text/html');"
        "document.body.append(d.body.firstChild); ask(window[0])"
    ),
    "an edit": _script(
        "const d = document.createElement('div'); d.contentEditable = true;"
        "document.body.append(d); d.focus();"
        "document.execCommand('insertHTML', false, '<iframe src=/never></iframe>');"
        "ask(window[0])"
    ),
    "a frame set": _script(
        "const s = document.createElement('frameset'), f = document.createElement('frame');"
        "f.src = '/never'; s.append(f); document.body.replaceWith(s); ask(window[0])"
    ),
    "a frame in a waiting frame": _script(
        "const f = never(); document.body.append(f);"
        "const g = f.contentDocument.createElement('iframe'); g.src = '/never';"
        "f.contentDocument.body.append(g); ask(f.contentWindow[0])"
    ),
    "a window that was tampered with before its document": _script(
        "const f = frame((f) => (f.src = '/nested')); document.body.append(f);"
        "const w = f.contentWindow; w.MutationObserver = class { observe() {} };"
        "w.MessageChannel = class {}; w.Proxy = function (target) { return target; };"
        "w.Object.defineProperty = () => {}; w.WeakMap = class {};"
    ),
    "an iterator that skips our loops": _script(
        "const real = Array.prototype[Symbol.iterator];"
        "Array.prototype[Symbol.iterator] = function* () {};"
        "document.body.append(never()); ask(window[0]);"
        "window[0].Node.prototype.appendChild.call(document.body, never()); ask(window[1]);"
        "Array.prototype[Symbol.iterator] = real"
    ),
    "a trap on the prototype of our traps": _script(
        "Object.prototype.get = function (target) {"
        " if (typeof target === 'function') try { target.call(navigator.geolocation, got) }"
        " catch {} };"
        "void navigator.geolocation.getCurrentPosition.name; delete Object.prototype.get;"
        "ask(window)"
    ),
    "methods of collections taken over": _script(
        "const get = WeakMap.prototype.get, has = WeakMap.prototype.has;"
        "WeakMap.prototype.has = () => true; WeakMap.prototype.get = () => undefined;"
        "document.body.append(never());"
        "WeakMap.prototype.has = has; WeakMap.prototype.get = get; ask(window[0])"
    ),
    "a window that opens": _script("ask(open('/never'))"),
    "an empty window that opens": _script("ask(open(''))"),
    "a window with a name": _script("open('/never', 'zeta'); ask(open('', 'zeta'))"),
    "a blob in a window": _script("open(html('<script>opener.ask(window)<\\/script>'))"),
    "a sandboxed frame of the same origin": _script(
        "document.body.append(frame((f) => { f.sandbox = 'allow-scripts allow-same-origin';"
        f" f.srcdoc = `{_INNER}`; }}))"
    ),
    "a sandboxed frame": _script(
        "document.body.append(frame((f) => { f.sandbox = 'allow-scripts'; f.allow = 'geolocation *';"
        f" f.srcdoc = `<script>{_TELL}<\\/script>`; }}))"
    ),
    "a frame of another origin": _script(
        "document.body.append(frame((f) => { f.allow = 'geolocation';"
        " f.src = 'http://localhost:' + location.port + '/tells'; }))"
    ),
    "the geolocation element": _page(
        "<geolocation autolocate onlocation='const p = this.position; p ? got(p) :"
        ' seen.push("null")\'></geolocation>'
    ),
    "the geolocation element's getter from a fresh realm": _page(
        "<iframe></iframe><geolocation autolocate></geolocation><script>"
        "const e = document.querySelector('geolocation'), get = (w) =>"
        " Object.getOwnPropertyDescriptor(w.HTMLGeolocationElement.prototype, 'position').get;"
        "e.addEventListener('location', () => { document.body.append(never()); for (const w of [window, window[0],"
        " window[1]]) { const p = get(w).call(e); try { p ? got(p) : seen.push('null') }"
        " catch { seen.push('threw') } } })</script>"
    ),
}

# Ways that only the browser's own refusal closes: they are open where strict is off, and the guide
# says so.  A window's next document is reachable before any extension runs in it; `<iframe>`s can be
# denied a position by the page's policy, other frames and windows cannot, and what is taken from
# there is the browser's own.
HELD: dict[str, str] = {
    "an object's next document from a blob, before its first tag": _script(
        "const o = document.createElement('object'); document.body.append(o); later(o, 'data')"
    ),
    "an embed's next document from a blob, before its first tag": _script(
        "const o = document.createElement('embed'); document.body.append(o); later(o, 'src')"
    ),
    "a frame set's next document from a blob, before its first tag": _script(
        "const s = document.createElement('frameset'), f = document.createElement('frame');"
        "s.append(f); document.body.replaceWith(s); later(f, 'src')"
    ),
    "a window's blob, before its first tag": _script(
        "const w = open(html('<p>x')), d = w.document, { port1, port2 } = new MessageChannel();"
        "port1.onmessage = () => (w.document === d ? port2.postMessage(0) : ask(w));"
        "port2.postMessage(0)"
    ),
    "a window that the page opens and holds, before its document's first tag": _script(
        "const w = open('/trickle'), d = w.document;"
        "const t = setInterval(() => { if (w.document !== d) { clearInterval(t); ask(w); } })"
    ),
    "functions taken from a frame's next document, before its first tag": _script(
        "next((f) => (f.srcdoc = '<p>x'), (view) => {"
        " const f = view.Document.prototype.createElement.call(document, 'iframe');"
        " f.src = '/never'; view.Node.prototype.appendChild.call(document.body, f);"
        " ask(window[1]); })"
    ),
}

# What the pages above load.
PARTS = {
    "/nested": "<!doctype html><body><iframe src=/never></iframe>"
    "<script>parent.ask(window[0]); parent.ask(window)</script>",
    "/trickle": "<!doctype html><script>parent.ask(window)</script>",
    "/tells": f"<!doctype html><script>{_TELL}</script>",
    "/service.js": "onfetch = (event) => { if (event.request.url.endsWith('/served'))"
    " event.respondWith(new Response(new ReadableStream({ start: (c) => setTimeout(() => {"
    " c.enqueue(new TextEncoder().encode('<p>x')); c.close(); }, 1000) }),"
    " { headers: { 'content-type': 'text/html' } })); };"
    "oninstall = () => skipWaiting(); onactivate = (e) => e.waitUntil(clients.claim());",
    "/worker.js": "const tell = (port) => port.postMessage({ seen: typeof navigator.geolocation });"
    "if (self.SharedWorkerGlobalScope) onconnect = (e) => tell(e.ports[0]); else tell(self);",
}

# Ways that give nothing true in any browser, looked at all the same.
OTHERS: dict[str, str] = {
    "workers": _script(
        "new Worker('/worker.js').onmessage = (e) => seen.push(e.data.seen);"
        "new SharedWorker('/worker.js').port.onmessage = (e) => seen.push(e.data.seen)"
    ),
    "permissions.query": _script(
        "navigator.permissions.query({ name: 'geolocation' }).then((s) => seen.push(s.state))"
    ),
    "texts of replaced functions": _script(
        "const named = (holder, name) => Object.getOwnPropertyDescriptor(holder, name);"
        "const all = [Geolocation.prototype.getCurrentPosition, Geolocation.prototype.watchPosition,"
        " named(GeolocationPosition.prototype, 'coords').get, Node.prototype.appendChild,"
        " named(HTMLGeolocationElement.prototype, 'position').get, Function.prototype.toString];"
        "document.body.append(frame()); const far = window[0].Function.prototype.toString;"
        "seen.push(all.map(String), all.map((f) => far.call(f)), all.map((f) => f.name),"
        " all.map((f) => f.length), all.map((f) => Object.getOwnPropertyNames(f).join()))"
    ),
}


ALL = LEAKS | HELD | OTHERS


def pages() -> dict[str, str]:
    """All of them, by address."""
    numbered = {address(name): text for name, text in ALL.items()}
    return numbered | PARTS


def address(name: str) -> str:
    """Where a door's page is."""
    return f"/door/{list(ALL).index(name)}"


def is_true(value: Any) -> bool:
    """Whether a page got the true place.  Reports lie on a grid whose points are 5 m from it at
    least; a report of five decimals is told from the truth by a millionth of a degree."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(part, float) for part in value)
        and abs(value[0] - TRUTH["latitude"]) < 1e-6
        and abs(value[1] - TRUTH["longitude"]) < 1e-6
    )


def seen_by_pages(browser: Any, url: str, names: Iterable[str] = ALL) -> dict[str, list[Any]]:
    """What every page got: all are opened at once, and read when each has something and 1.5 s have
    passed."""
    from playwright.sync_api import Error

    wanted = {url + address(name): name for name in names}
    opener = browser.opened(f"{url}/opener")
    opener.evaluate("(all) => all.forEach((one) => open(one, '_blank', 'noopener'))", [*wanted])
    until = time.monotonic() + _WAIT_S
    opener.wait_for_timeout(1500)
    found: dict[str, list[Any]] = {}
    while len(found) < len(wanted):
        for page in browser.context.pages:
            name = wanted.get(page.url)
            if name is None or name in found:
                continue
            try:
                seen = json.loads(page.evaluate("JSON.stringify(seen)"))
            except Error:  # a page that loads itself again
                continue
            if seen or time.monotonic() > until:
                found[name] = seen
        assert time.monotonic() < until + _WAIT_S, set(wanted.values()) - set(found)
        opener.wait_for_timeout(100)
    for page in browser.context.pages:  # once more: what came after the first
        if name := wanted.get(page.url):
            found[name] = json.loads(page.evaluate("JSON.stringify(seen)"))
        if page.url.startswith("http"):
            page.close()
    return found


def seen_in_firefox(folder: str, url: str, firefox: str) -> dict[str, list[Any]]:
    """The same in a Firefox, page after page; "none" is without an extension."""
    from playwright._impl._driver import compute_driver_executable

    wanted: dict[str, Any] = {name: address(name) for name in LEAKS | HELD} | {"truth": TRUTH}
    script = Path(__file__).with_name("firefox.mjs")
    command = [compute_driver_executable()[0], script, firefox, folder, url]
    done = subprocess.run(
        command, input=json.dumps(wanted), capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def _main(folder: str, firefox: str = "") -> None:
    with serving_pages(pages()) as url:
        if firefox:
            found = seen_in_firefox(folder, url, firefox)
        else:
            with protected(Path(folder), ours=False) as browser:
                found = seen_by_pages(browser, url, LEAKS | HELD)
    leaks = [name for name in found if any(map(is_true, found[name]))]
    print(f"the true place gets out of {len(leaks)} of {len(found)} pages:", *leaks, sep="\n  ")


if __name__ == "__main__":
    _main(*sys.argv[1:])
