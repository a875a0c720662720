// Parts that several panels use: the map, swatches, bars, a line chart, fields.

import { html, useEffect, useRef, useState } from "./html.js";
import { colourOf, outline } from "./looks.js";
import { MapView } from "./mapview.js";

const KEYS = "Arrow keys move, plus and minus zoom, 0 shows all";

/** The map as an element; `bounds` are fitted when they change, everything else is drawn as it comes. */
export function Chart2D({ label, bounds, onPick, onSquare, onView, points, ghost, heat, marks, plane, tiles, square, drawing, size }) {
  const box = useRef(null);
  const map = useRef(null);
  const calls = useRef({});
  calls.current = { onPick, onSquare };
  useEffect(() => {
    map.current = new MapView(box.current, (x, y) => calls.current.onPick?.(x, y), (found) => calls.current.onSquare?.(found));
    box.current.map = map.current;
    onView?.(map.current);
    return () => map.current.close();
  }, []);
  useEffect(() => {
    map.current.touched = false;
    map.current.fit(bounds);
  }, [bounds?.join()]);
  useEffect(() => {
    const shown = { points, ghost, heat, marks: marks ?? [], plane, tiles, square, drawing, size: size ?? 1 };
    map.current.show(shown);
  }, [points, ghost, heat, marks, plane, tiles, square, drawing, size]);
  const keys = onPick ? `${KEYS}, Enter picks the check-in nearest to the middle` : KEYS;
  return html`<div class="map ${drawing ? "drawing" : ""}" ref=${box}>
    <canvas aria-hidden="true"></canvas><canvas aria-hidden="true"></canvas>
    <canvas tabindex="0" role="application" aria-label="${label}. ${keys}." title=${keys}></canvas>
    <div class="zoom" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom in" onClick=${() => map.current.zoom(1.5)}>+</button>
      <button type="button" aria-label="Zoom out" onClick=${() => map.current.zoom(1 / 1.5)}>−</button>
      <button type="button" aria-label="Show all" onClick=${() => map.current.key({ key: "0", preventDefault() {} })}>⤢</button>
    </div>
  </div>`;
}

export function Swatch({ user }) {
  return html`<svg class="swatch" viewBox="-6 -6 12 12" aria-hidden="true"><path d=${outline(user, 4.4)} fill=${colourOf(user)} /></svg>`;
}

/** Who is drawn how; of many users those with most check-ins. */
export function Legend({ users, most = 24 }) {
  const drawn = users.map((user, at) => ({ ...user, at }));
  const shown = users.length > most ? drawn.sort((a, b) => b.count - a.count).slice(0, most) : drawn;
  return html`<ul class="legend" aria-label="Users">
    ${shown.map((user) => html`<li key=${user.name}><${Swatch} user=${user.at} />${user.name}</li>`)}
    ${users.length > most && html`<li class="rest">the ${most} most frequent; ${(users.length - most).toLocaleString("en")} more in the same colours and shapes</li>`}
  </ul>`;
}

/** What the adversary believes: one bar a user; of many users the likeliest, and the sender. */
export function Bars({ users, values, sender, label }) {
  const shown = users.map((user, at) => ({ name: user.name, at, value: values[at] }));
  const first = users.length > 12 ? shown.sort((a, b) => b.value - a.value).slice(0, 12) : shown;
  const order = [...first, ...shown.slice(first.length).filter(({ name }) => name === sender)];
  return html`<ul class="bars" aria-label=${label}>
    ${order.map(({ name, at, value }) => html`<li key=${name}>
      <span class="who"><${Swatch} user=${at} />${name}${sender === name ? " ✓" : ""}</span>
      <span class="rail"><span class="bar" style=${{ width: `${100 * value}%`, background: colourOf(at) }}></span></span>
      <span class="value">${percent(value)}</span>
    </li>`)}
  </ul>`;
}

/** A run in a few words: "exact, 120 m", "codebook, 300 m, 10 reports". */
export function nameOf(run) {
  return `${run.solver}, ${run.max_loss} m${(run.reports ?? 1) === 1 ? "" : `, ${run.reports} reports`}`;
}

/** Of the finished runs the one to begin with: the last that can be handed out; an exact one lists true places. */
export function firstChoice(runs) {
  return (runs.findLast((run) => run.solver !== "exact") ?? runs.at(-1))?.id ?? "";
}

export function percent(value, digits = 0) {
  return `${(100 * value).toFixed(digits)} %`;
}

export function metres(value) {
  return `${Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 0.1 ? value.toFixed(1) : value.toPrecision(2)} m`;
}

/** What each figure means, to be unfolded; `terms` by key: a name and a sentence. */
export function Glossary({ terms }) {
  return terms && html`<details class="glossary"><summary>What do the figures mean?</summary>
    <dl>${Object.entries(terms).map(([key, [name, says]]) => html`<div key=${key} id="means-${key}" tabindex="-1"><dt>${name}</dt><dd>${says}</dd></div>`)}</dl>
  </details>`;
}

/** The name of a figure: press it to read what the figure means. */
export function Term({ term, children }) {
  const show = (event) => {
    event.preventDefault();
    const box = document.querySelector("details.glossary");
    if (!box) return;
    box.open = true;
    document.getElementById(`means-${term}`)?.focus();
  };
  return html`<a class="term" href="#means-${term}" title="What does this mean?" onClick=${show}>${children}</a>`;
}

/** The head of a column, with what it means for a pointer that rests on it. */
export function Head({ terms, term, children }) {
  return html`<th scope="col" title=${terms?.[term]?.[1]}>${terms?.[term] ? html`<${Term} term=${term}>${children}<//>` : children}</th>`;
}

/** A labelled field; `children` is the control. */
export function Field({ id, label, note, children }) {
  return html`<div class="field"><label for=${id}>${label}</label>${children}${note && html`<small id="${id}-note">${note}</small>`}</div>`;
}

export function Select({ id, label, value, options, onChange, note, disabled }) {
  return html`<${Field} id=${id} label=${label} note=${note}>
    <select id=${id} value=${value} disabled=${disabled} onChange=${(event) => onChange(event.target.value)} aria-describedby=${note ? `${id}-note` : undefined}>
      ${options.map(([word, text]) => html`<option key=${word} value=${word} selected=${word === value}>${text}</option>`)}
    </select>
  <//>`;
}

export function NumberField({ id, label, value, onChange, note, placeholder, disabled }) {
  return html`<${Field} id=${id} label=${label} note=${note}>
    <input id=${id} type="text" inputmode="decimal" autocomplete="off" value=${value} placeholder=${placeholder} disabled=${disabled}
      onInput=${(event) => onChange(event.target.value)} aria-describedby=${note ? `${id}-note` : undefined} />
  <//>`;
}

/** What a field holds: a number, nothing (null), or the text itself, which the server refuses with a sentence. */
export function numberIn(text) {
  const trimmed = String(text).trim();
  if (trimmed === "") return null;
  const value = Number(trimmed.replace(",", "."));
  return Number.isFinite(value) ? value : trimmed;
}

const [WIDE, TALL, LEFT, BOTTOM] = [360, 190, 54, 32];

/** Lines over one horizontal axis, as SVG. `series`: {name, x, y, look, dots}; `across`: {value, name} levels; `marks`: {value, name} on the x axis; `at`: a place on it. */
export function Lines({ title, xLabel, yLabel, series, across = [], marks = [], at, summary }) {
  const drawn = series.filter((one) => one.x.length);
  const xs = [...drawn.flatMap((one) => one.x), ...marks.map((one) => one.value)];
  const ys = [...drawn.flatMap((one) => one.y.filter(Number.isFinite)), ...across.map((one) => one.value)];
  if (!ys.length) return html`<figure class="chart"><figcaption>${title}</figcaption><p class="quiet">Nothing to draw yet.</p></figure>`;
  const whole = xs.every(Number.isInteger); // rounds are counted
  const [x0, x1] = spread(xs.length ? xs : [0, 1], 0);
  const [y0, y1] = spread(ys, 0.08);
  const px = (value) => LEFT + ((value - x0) / (x1 - x0)) * (WIDE - LEFT - 8);
  const py = (value) => TALL - BOTTOM - ((value - y0) / (y1 - y0)) * (TALL - BOTTOM - 8);
  const path = (one) => one.x.map((value, step) => `${step ? "L" : "M"}${px(value).toFixed(1)},${py(one.y[step]).toFixed(1)}`).join("") + (one.x.length === 1 ? "h0" : "");
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <svg viewBox="0 0 ${WIDE} ${TALL}" role="img" aria-label=${summary ?? title}>
      ${ticks(y0, y1, 4).map((value) => html`<g key=${value}><line class="grid" x1=${LEFT} x2=${WIDE - 8} y1=${py(value)} y2=${py(value)} /><text x=${LEFT - 5} y=${py(value) + 4} text-anchor="end">${+value.toPrecision(4)}</text></g>`)}
      ${ticks(x0, x1, 5).filter((value) => !whole || Number.isInteger(+value.toPrecision(6))).map((value) => html`<text key=${value} x=${px(value)} y=${TALL - BOTTOM + 14} text-anchor="middle">${+value.toPrecision(4)}</text>`)}
      <text x=${(WIDE + LEFT) / 2} y=${TALL - 3} text-anchor="middle">${xLabel}</text>
      <text transform="translate(11 ${(TALL - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">${yLabel}</text>
      ${across.map((one) => html`<g key=${one.name}><line class="level ${one.look ?? ""}" x1=${LEFT} x2=${WIDE - 8} y1=${py(one.value)} y2=${py(one.value)} /><text class="note" x=${WIDE - 10} y=${py(one.value) - 4} text-anchor="end">${one.name}</text></g>`)}
      ${marks.map((one) => html`<g key=${one.name}><line class="mark" x1=${px(one.value)} x2=${px(one.value)} y1="8" y2=${TALL - BOTTOM} /><text class="note" x=${px(one.value) - 4} y=${TALL - BOTTOM - 6} text-anchor="end">${one.name}</text></g>`)}
      ${drawn.map((one) => html`<path key=${one.name} class="line ${one.look ?? ""}" d=${path(one)} />`)}
      ${at !== undefined && at >= x0 && at <= x1 && html`<line class="at" x1=${px(at)} x2=${px(at)} y1="8" y2=${TALL - BOTTOM} />`}
    </svg>
    <ul class="key">${drawn.map((one) => html`<li key=${one.name}><span class="line-key ${one.look ?? ""}"></span>${one.name}</li>`)}</ul>
  </figure>`;
}

function spread(values, margin) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const wide = high - low || Math.abs(high) * 0.1 || 1;
  return [low - margin * wide, high + (margin || (high === low ? 1e-9 + wide : 0)) * wide];
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((nice) => nice * unit >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) found.push(Math.abs(value) < 1e-12 ? 0 : value);
  return found;
}

/** The theme: the system's, or the one chosen here. */
export function ThemeButton() {
  const [chosen, choose] = useState(() => {
    try {
      return localStorage.getItem("theme") ?? "";
    } catch {
      return "";
    }
  });
  useEffect(() => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // A browser that keeps nothing forgets the theme, too.
    }
    dispatchEvent(new Event("themechange"));
  }, [chosen]);
  const next = { "": "dark", dark: "light", light: "" };
  const words = { "": "as the system", dark: "dark", light: "light" };
  return html`<button type="button" class="plain" onClick=${() => choose(next[chosen])} aria-label="Theme: ${words[chosen]}. Press to change.">
    <span aria-hidden="true">${{ "": "◐", dark: "●", light: "○" }[chosen]}</span> <span class="wide-only">Theme: ${words[chosen]}</span>
  </button>`;
}
