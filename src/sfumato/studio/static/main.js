// The page: five panels over one state. The server tells what changes; panels ask and show.

import { ask, discard, enter, fetchPoints, fetchStreets, listen, takeUp, unpack } from "./api.js";
import { useStreets } from "./ground.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { rankUsers } from "./looks.js";
import { Glossary, ThemeButton, nameOf } from "./parts.js";
import { DataPanel } from "./panel-data.js";
import { SolvePanel } from "./panel-solve.js";
import { ComparePanel } from "./panel-compare.js";
import { AttackPanel } from "./panel-attack.js";
import { DownloadPanel } from "./panel-download.js";

const PANELS = [
  ["data", "Data", DataPanel],
  ["solve", "Solve", SolvePanel],
  ["compare", "Compare", ComparePanel],
  ["attack", "Attack", AttackPanel],
  ["download", "Take away", DownloadPanel],
];
const counted = (runs) => (runs === 1 ? "a run" : `${runs} runs`);
const NOTHING = { data: null, points: null, curves: {}, proved: null, refined: null, refining: false, linking: false, runs: [], live: null, comparison: null, comparing: false, look: null, looking: null, game: null, queue: [], keeping: false };

function App() {
  const [state, setState] = useState({ ...NOTHING, entered: null, solvers: [], panel: "data", error: "", said: "", lost: false, budget: "", form: { solver: "", objective: "bayes", reports: 1, cell_m: "25", seed: "0", time_limit: "" } });
  const now = useRef(state);
  now.current = state;
  const [, redraw] = useState(0);

  const update = (part) => {
    now.current = { ...now.current, ...(typeof part === "function" ? part(now.current) : part) };
    setState(now.current);
  };

  /** Ask the server; a refusal becomes a sentence at the top of the page, and the answer is null. */
  const attempt = async (work) => {
    try {
      const answer = await work();
      update({ error: "" });
      return answer;
    } catch (error) {
      update({ error: sentence(error.message) });
      return null;
    }
  };

  const useData = async (data) => {
    const points = await fetchPoints();
    rankUsers(data.users);
    const cloud = { ...unpack(data.cloud.truth), user: Uint32Array.from(data.cloud.users) };
    const budget = String(Math.round(Math.min(0.8 * data.most_budget, 200)) || +(0.8 * data.most_budget).toPrecision(2));
    update({ ...NOTHING, data, points, cloud, budget });
  };

  /** Show what the server has: after the page was loaded again, or another page has changed it. */
  const take = async (found) => {
    if (found.data && found.data.choice !== now.current.data?.choice) await useData(found.data);
    const old = now.current.live;
    const run = found.runs.find((one) => one.state === "running") ?? found.runs.find((one) => one.id === old?.run.id) ?? found.runs.findLast((one) => one.state === "interrupted" || one.solution);
    const live = run ? { ...(old?.run.id === run.id ? old : { records: [], cloud: null }), run } : null;
    update({ runs: found.runs, curves: found.curves, proved: found.proved, comparison: found.comparison, live });
  };

  useEffect(() => {
    addEventListener("themechange", () => redraw((count) => count + 1));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));
    attempt(async () => {
      const entered = await enter();
      if (entered.streets) useStreets(await fetchStreets());
      update({ entered });
      listen((event) => hear(event, now, update, actions), (lost) => update({ lost }));
      const found = await ask("state");
      const solver = found.solvers.find((one) => one.default) ?? found.solvers[0];
      update((old) => ({ solvers: found.solvers, form: { ...old.form, solver: solver.name } }));
      if (found.data && !now.current.data) { // unless other data was chosen meanwhile
        await take(found);
        update({ said: "Your work on this page was restored." });
      } else if (entered.given && !now.current.chosen) update({ opening: true });
    });
  }, []);

  useEffect(() => scrollTo(0, 0), [state.panel]);

  const actions = {
    update,
    attempt,
    useData,
    take,
    now,
    async solve(asked) {
      const run = await attempt(() => ask("solve", asked));
      if (run) update((old) => ({ live: { run, records: [], cloud: null }, runs: [...old.runs.filter((one) => one.kept || (one.state === "interrupted" && one.solution)), run], said: `${nameOf(run)}: at work.` }));
      return run;
    },
    async keep(id, kept = true) {
      if (!(await attempt(() => ask("keep", { run: id, kept })))) return;
      update((old) => ({ runs: old.runs.map((one) => (one.id === id ? { ...one, kept } : one)), comparison: null, look: null, said: kept ? `Kept for comparing, in ${old.entered.folder} until the studio ends.` : "No longer kept." }));
    },
    /** Whether other data may be chosen: it drops kept and unfinished runs, so the person is asked. */
    mayDrop() {
      const count = now.current.runs.filter((one) => one.kept || one.state === "interrupted").length;
      return !count || confirm(`Other data drops ${count === 1 ? "the run that is kept or unfinished" : `the ${count} runs that are kept or unfinished`} on this page. Continue?`);
    },
    async discard(left) {
      if (!confirm(`Remove ${counted(left.runs)} on ${left.data} for good?`)) return;
      if (await attempt(() => discard(left.session))) update((old) => ({ entered: { ...old.entered, left: old.entered.left.filter((one) => one !== left) }, said: "Removed." }));
    },
    /** Solve several one after the other and keep each. */
    async solveAll(tasks) {
      update({ queue: tasks.slice(1), keeping: tasks.length > 0 });
      if (tasks.length && !(await actions.solve(tasks[0]))) update({ queue: [], keeping: false });
    },
  };

  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = PANELS.findIndex(([name]) => name === state.panel);
    const [name] = PANELS[(at + step + PANELS.length) % PANELS.length];
    update({ panel: name, error: "", said: "" });
    document.getElementById(`tab-${name}`).focus();
    event.preventDefault();
  };
  const Panel = PANELS.find(([name]) => name === state.panel)[2];
  return html`
    <header>
      <h1>sfumato <span class="wide-only">studio</span></h1>
      <div role="tablist" aria-label="Steps" onKeyDown=${keys}>
        ${PANELS.map(([name, word], at) => html`<button key=${name} id="tab-${name}" role="tab" type="button" aria-selected=${state.panel === name} aria-controls="panel" tabindex=${state.panel === name ? 0 : -1} onClick=${() => update({ panel: name, error: "", said: "" })}><span class="step" aria-hidden="true">${at + 1}</span>${word}</button>`)}
      </div>
      <${ThemeButton} />
    </header>
    <div role="alert" class="error" hidden=${!state.error}>${state.error}${state.error && html` <button type="button" class="plain" aria-label="Close this message" onClick=${() => update({ error: "" })}>✕</button>`}</div>
    ${state.lost && html`<div class="error" role="alert">The studio does not answer. If <code>sfumato studio</code> is still running, load this page again.</div>`}
    ${(state.entered?.left ?? []).map((left) => html`<div class="left" key=${left.session}>${left.open ? `Another page works on ${left.data}.` : `A closed page has ${counted(left.runs)} on ${left.data}, in ${left.folder}.`} <button type="button" onClick=${() => takeUp(left.session)}>${left.open ? "Show it here too" : "Take up again"}</button> ${!left.open && html`<button type="button" onClick=${() => actions.discard(left)}>Discard</button>`}</div>`)}
    <div class="said" role="status" aria-live="polite">${state.said}</div>
    <main><div id="panel" role="tabpanel" aria-labelledby="tab-${state.panel}"><${Panel} state=${state} actions=${actions} /></div></main>
    <${Glossary} terms=${state.entered?.terms} />
    <footer>Everything stays on this machine. ${state.entered?.tiles ? "Street tiles are fetched from the address that you gave: its owner sees where you look." : ""}</footer>`;
}

/** What the server says of its own accord. */
function hear(event, now, update, actions) {
  const live = now.current.live;
  const withRun = (run) => now.current.runs.map((one) => (one.id === run.id ? { ...run, kept: one.kept } : one));
  if (event.kind === "prove-curve") update((old) => ({ curves: { ...old.curves, [event.objective]: event } }));
  else if (event.kind === "prove-proved") update({ proved: event.cell_m });
  else if (event.kind === "prove-refined") update((old) => ({ refined: event, refining: old.refining === event.max_loss ? false : old.refining }));
  else if (event.kind === "prove-linked") update((old) => ({ curves: { ...old.curves, linked: event }, linking: !event.done }));
  else if (event.kind === "changed") actions.attempt(async () => actions.take(await ask("state")));
  else if (event.kind === "solve-stopping") update({ said: "Stopping … To stop at once, press Stop again." });
  else if (event.kind === "prove-failed") update({ refining: false, linking: false, curves: {}, error: sentence(`The frontier was not proved: ${event.error}`) });
  else if (event.kind === "solve-round" && live) {
    update({ live: { ...live, records: [...live.records, event.record], cloud: event.cloud ? unpack(event.cloud) : live.cloud } });
  } else if (event.kind === "solve-done") {
    update({ runs: withRun(event.run), live: { ...(live ?? { records: [] }), run: event.run, cloud: unpack(event.cloud) }, said: `${event.run.solver} has ended. ${event.run.said} ${event.run.solution.proved ?? ""}` });
    if (now.current.keeping) next(event.run, now, update, actions);
  } else if (event.kind === "solve-failed" || event.kind === "solve-stopped") {
    const stopped = event.kind === "solve-stopped";
    const resumable = event.run.state === "interrupted";
    update({ live: resumable ? { ...(live ?? { records: [], cloud: null }), run: event.run } : null, queue: [], keeping: false, runs: resumable ? withRun(event.run) : now.current.runs.filter((one) => one.id !== event.run.id), error: stopped ? "" : sentence(event.error), said: stopped ? event.error : "" });
  } else if (event.kind === "compare-done") update({ comparison: event, comparing: false, said: "Compared." });
  else if (event.kind === "compare-failed") update({ comparing: false, error: sentence(event.error) });
}

async function next(run, now, update, actions) {
  await actions.keep(run.id);
  const [first, ...rest] = now.current.queue;
  update({ queue: rest, keeping: Boolean(first) });
  if (first && !(await actions.solve(first))) update({ queue: [], keeping: false });
}

function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
