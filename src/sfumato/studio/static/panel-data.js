// Data: four-corners, a file, or what was named on the command line; region and users; the points.

import { ask, sendFile } from "./api.js";
import { html, useEffect, useMemo, useState } from "./html.js";
import { Chart2D, Legend, NumberField, Swatch, Term, numberIn, percent } from "./parts.js";
import { plane } from "./plane.js";

const EMPTY = { lat: "", lon: "", side: "", top: "", train: "", test: "", secretColumn: "", latColumn: "", lonColumn: "" };
const [SHOWN, MANY, FEW] = [100, 30, 6]; // users listed at a time; from how many on fewer are proposed; how many then
const QUARTER_M = 5000; // side of the part of a city that is proposed with them

export function DataPanel({ state, actions }) {
  const { data, points, entered } = state;
  const [busy, setBusy] = useState("");
  const [form, setForm] = useState(state.dataForm ?? { ...EMPTY, source: data?.recipe.source === "four-corners" ? "four-corners" : "" });
  const [over, setOver] = useState(false);
  const [drawing, setDrawing] = useState(false);
  const [view, setView] = useState(null);
  const [off, setOff] = useState(state.usersOff ?? null); // who was unticked since; null: nobody was ticked or unticked
  const [wanted, setWanted] = useState("");
  const sought = wanted.toLowerCase();
  const listed = (data?.everybody ?? []).filter((user) => user.name.toLowerCase().includes(sought));
  // whoever has that very name comes first: of "12" the list may not reach user 12
  listed.sort((one, other) => (other.name.toLowerCase() === sought) - (one.name.toLowerCase() === sought));
  const set = (part) => {
    const next = { ...form, ...part };
    setForm(next);
    actions.update({ dataForm: next });
    return next;
  };
  const turn = (next) => {
    setOff(next);
    actions.update({ usersOff: next });
    if (next && data?.recipe.top_users) set({ top: "" }); // the ticks say who is meant
  };
  const others = (names) => new Set(names ? data.everybody.map((one) => one.name).filter((name) => !names.has(name)) : []);
  const recipe = data?.recipe ?? {};
  const named = useMemo(() => others(recipe.users && new Set(recipe.users)), [data]);
  const absent = useMemo(() => others((recipe.users || recipe.top_users) && new Set(data.users.map((one) => one.name))), [data]);
  const out = off ?? absent; // whose box is empty

  const choose = async (source, next = form, without = off ?? (numberIn(next.top) === null ? absent : named)) => {
    if (!actions.mayDrop()) return;
    setBusy("Reading …");
    actions.update({ said: "Reading …", reading: true }); // also seen from other panels
    const square = [next.lat, next.lon, next.side].map(numberIn);
    const users = without.size && data ? data.everybody.map((one) => one.name).filter((name) => !without.has(name)) : null;
    const asked = {
      source,
      square: square.every((value) => value === null) ? null : square,
      users: source === form.source ? users : null,
      top_users: numberIn(next.top),
      train: numberIn(next.train),
      test: numberIn(next.test),
      secret: next.secretColumn,
      lat: next.latColumn,
      lon: next.lonColumn,
      discard: true, // the person was asked
    };
    const found = await actions.attempt(() => ask("data", asked));
    if (found) {
      await actions.attempt(() => actions.useData(found));
      turn(null);
      if (found.opened) actions.update({ runs: found.opened, live: { run: found.opened.at(-1), records: [], cloud: null } });
      actions.update({ said: `${found.name}: ${found.rows.toLocaleString("en")} check-ins of ${found.users.length.toLocaleString("en")} users.` });
    }
    else actions.update({ said: "" });
    actions.update({ reading: false });
    setBusy("");
  };

  const fresh = (source) => {
    actions.update({ chosen: true });
    const next = set({ ...EMPTY, source });
    turn(null);
    choose(source, next, new Set());
  };

  useEffect(() => {
    if (!state.opening) return;
    actions.update({ opening: false });
    fresh("given"); // what was named on the command line
  }, [state.opening]);

  const take = async (file) => {
    if (!file) return;
    actions.update({ chosen: true }); // and what was named on the command line is not opened
    setBusy("Reading …");
    const sent = await actions.attempt(() => sendFile(file));
    setBusy("");
    if (!sent) return;
    const kept = set({ source: "file" });
    turn(null);
    await choose("file", kept, new Set());
  };

  const placed = ([x0, y0, x1, y1]) => {
    const [lat, lon] = plane(data.plane).toDegrees([(x0 + x1) / 2, (y0 + y1) / 2]);
    return { lat: lat.toFixed(5), lon: lon.toFixed(5), side: Math.abs(x1 - x0).toFixed(0) };
  };
  const square = (found) => {
    setDrawing(false);
    set(placed(found));
  };
  const wide = data?.plane && Math.max(data.bounds[2] - data.bounds[0], data.bounds[3] - data.bounds[1]) > 2 * QUARTER_M;
  const busiest = useMemo(() => (wide && points ? densest(points, QUARTER_M) : null), [points]);
  const fewer = () => {
    choose(form.source, set({ ...(busiest && placed(busiest)), top: String(FEW) }));
  };
  const useView = () => {
    const half = Math.min(view.width, view.height) / view.view.scale / 2;
    square([view.view.x - half, view.view.y - half, view.view.x + half, view.view.y + half]);
  };
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };

  return html`
    <section class="stage" aria-label="Map">
      ${data
        ? html`<${Chart2D} label="Map of ${data.rows} check-ins" bounds=${data.bounds} points=${points} plane=${data.plane} tiles=${entered?.tiles} square=${squareOf(form, data)} drawing=${drawing} onSquare=${square} onView=${setView} /><${Legend} users=${data.users} />`
        : html`<div class="welcome"><h2>Who can be recognised from your reports?</h2><p>Bring check-ins of several people: one row each with a user, a latitude and a longitude. sfumato finds a mechanism that blurs each place before it is sent, so that it hides <em>who</em> sent it, and proves how close to the best possible it is.</p><p>No data at hand? <strong>Four corners</strong> is a made-up set of four people in Paris.</p></div>`}
    </section>
    <section class="side" aria-label="Data">
      <h2>Data</h2>
      <div class="row">
        <button type="button" disabled=${busy} onClick=${() => fresh("four-corners")}>Four corners</button>
        ${entered?.given && entered.given !== "four-corners" && html`<button type="button" disabled=${busy} onClick=${() => fresh("given")}>${entered.given}</button>`}
      </div>
      <div class="drop ${over ? "over" : ""}" onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
        <label for="file">Drop a file here, or choose one</label>
        <input id="file" type="file" accept=".csv,.txt,.tsv,.gz,.parquet,.pq" onChange=${(event) => { take(event.target.files[0]); event.target.value = ""; }} />
        <small>CSV, Parquet or SNAP check-ins, also gzipped. It stays on this machine.</small>
      </div>
      <p class="busy" role="status">${busy}</p>
      ${data && html`<p><strong>${data.name}</strong>: ${data.rows.toLocaleString("en")} check-ins of ${data.users.length.toLocaleString("en")} users, ${data.train.toLocaleString("en")} to learn from${data.test ? ` and ${data.test.toLocaleString("en")} to test on` : ""}. A <${Term} term="blind">blind guess<//> of the user is wrong ${percent(data.blind_error, 1)} of the time.</p>`}
      ${data?.notes.map((note) => html`<p class="quiet" key=${note}>${note}</p>`)}
      <form onSubmit=${(event) => { event.preventDefault(); choose(form.source); }}>
        <fieldset><legend>Region</legend>
          <div class="row three">
            <${NumberField} id="lat" label="Latitude" value=${form.lat} onChange=${(lat) => set({ lat })} />
            <${NumberField} id="lon" label="Longitude" value=${form.lon} onChange=${(lon) => set({ lon })} />
            <${NumberField} id="side" label="Side, m" value=${form.side} onChange=${(side) => set({ side })} />
          </div>
          <div class="row">
            <button type="button" disabled=${!data?.plane} aria-pressed=${drawing} onClick=${() => setDrawing(!drawing)}>Draw a square</button>
            <button type="button" disabled=${!data?.plane || !view} onClick=${useView}>Use this view</button>
            <button type="button" disabled=${!form.lat && !form.lon && !form.side} onClick=${() => set({ lat: "", lon: "", side: "" })}>Everywhere</button>
          </div>
          ${data && !data.plane && html`<small>This data is in plane metres; a region needs latitudes and longitudes.</small>`}
        </fieldset>
        ${data && html`<fieldset><legend>Users</legend>
          ${data.users.length > MANY && html`<p class="quiet">With this many users proofs and learning take minutes to hours, and users hide each other only where they meet. <button type="button" disabled=${busy} onClick=${fewer}>Keep the ${FEW} most frequent${busiest ? ` of the busiest ${QUARTER_M / 1000} km` : ""}</button></p>`}
          ${data.everybody.length > SHOWN && html`<div class="row"><input id="find-user" type="search" aria-label="Find a user" placeholder="Find a user" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></div>`}
          <div class="users">
            ${listed.slice(0, SHOWN).map((user) => {
              const at = data.users.findIndex((one) => one.name === user.name);
              return html`<label key=${user.name}><input type="checkbox" checked=${!out.has(user.name)} onChange=${(event) => { const next = new Set(out); if (event.target.checked) next.delete(user.name); else next.add(user.name); turn(next); }} />${at >= 0 && html`<${Swatch} user=${at} />`}${user.name} <small>${user.count}</small></label>`;
            })}
          </div>
          ${listed.length > SHOWN && html`<small>The ${SHOWN} most frequent of ${listed.length.toLocaleString("en")} users${wanted ? " with that in their name" : ""}.</small>`}
          <div class="row">
            <button type="button" onClick=${() => turn(new Set([...out].filter((name) => !listed.some((user) => user.name === name))))}>Tick ${wanted ? "those found" : "all"}</button>
            <button type="button" onClick=${() => turn(new Set([...out, ...listed.map((user) => user.name)]))}>Untick ${wanted ? "those found" : "all"}</button>
          </div>
          <div class="row three">
            <${NumberField} id="top" label="Most frequent users" value=${form.top} placeholder="all" onChange=${(top) => set({ top })} />
            <${NumberField} id="train" label="Learn from, each" value=${form.train} placeholder="all" onChange=${(train) => set({ train })} />
            <${NumberField} id="test" label="Hold out, each" value=${form.test} placeholder="0" onChange=${(test) => set({ test })} />
          </div>
        </fieldset>`}
        <details><summary>Names of columns</summary>
          <div class="row three">
            ${[["secretColumn", "User"], ["latColumn", "Latitude"], ["lonColumn", "Longitude"]].map(([name, word]) => html`<div class="field" key=${name}><label for=${name}>${word}</label><input id=${name} type="text" value=${form[name]} onInput=${(event) => set({ [name]: event.target.value })} /></div>`)}
          </div>
        </details>
        <div class="row"><button type="submit" class="main" disabled=${busy || !form.source}>Select</button>
        ${data && html`<button type="button" class="go" onClick=${() => actions.update({ panel: "solve" })}>Next: solve →</button>`}</div>
      </form>
    </section>`;
}

/** The square of this side with most points, in steps of a fifth of it. */
function densest({ x, y }, side) {
  const [step, counts] = [side / 5, new Map()];
  let best = [0, 0, 0];
  for (let at = 0; at < x.length; at += 1) {
    const [column, row] = [Math.floor(x[at] / step), Math.floor(y[at] / step)];
    const cell = `${column} ${row}`;
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  for (const cell of counts.keys()) {
    const [column, row] = cell.split(" ").map(Number); // the square's middle cell
    let sum = 0;
    for (let dx = -2; dx <= 2; dx += 1) for (let dy = -2; dy <= 2; dy += 1) sum += counts.get(`${column + dx} ${row + dy}`) ?? 0;
    if (sum > best[0]) best = [sum, (column - 2) * step, (row - 2) * step];
  }
  return [best[1], best[2], best[1] + side, best[2] + side];
}

/** The square in the fields, on the plane of what is shown. */
function squareOf(form, data) {
  const [lat, lon, side] = [form.lat, form.lon, form.side].map(numberIn);
  if (!data.plane || ![lat, lon, side].every((value) => typeof value === "number")) return null;
  const middle = plane(data.plane).toMetres(lat, lon);
  if (!middle) return null;
  const [x, y] = middle;
  return [x - side / 2, y - side / 2, x + side / 2, y + side / 2];
}
