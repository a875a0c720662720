// Solve: a budget that snaps to the frontier, what is proved there, a solver at work.

import { ask } from "./api.js";
import { fanOut, stepOf as stepOfFrame } from "./fan.js";
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { LinkedChart, LinkedProved, ReportsSlider, reportsInWords } from "./linked.js";
import { Chart2D, Legend, Lines, NumberField, Select, Term, metres, nameOf, numberIn, percent } from "./parts.js";
import { progressOf, released } from "./progress.js";
import { bestKnown } from "./proof.js";

const REST_MS = 500;
const NEAR = 0.005; // a Bayes error so little below a blind guess's is as good as it

export function SolvePanel({ state, actions }) {
  const { data, curves, form, budget, live, refining } = state;
  const rest = useRef(null);
  const metresNow = numberIn(budget);
  const usable = typeof metresNow === "number" && metresNow > 0;
  const cellM = numberIn(form.cell_m);
  const setForm = (part) => actions.update({ form: { ...form, ...part } });

  const refine = () => {
    const now = actions.now.current;
    const asked = { max_loss: numberIn(now.budget), cell_m: numberIn(now.form.cell_m) };
    if (!data.provable || !now.proved || typeof asked.max_loss !== "number" || !(asked.max_loss > 0)) return;
    actions.update({ refining: asked.max_loss });
    ask("refine", asked).catch(() => actions.update({ refining: false }));
  };
  const move = (value) => {
    actions.update({ budget: value, error: "" });
    clearTimeout(rest.current);
    rest.current = setTimeout(refine, REST_MS);
  };
  const choose = (reports) => {
    setForm({ reports });
    if (reports === 1 || !data.provable || curves.linked?.done || state.linking) return;
    actions.update({ linking: true });
    ask("link").catch(() => actions.update({ linking: false }));
  };
  useEffect(() => {
    if (data && state.proved && !refining && state.refined?.max_loss !== metresNow) refine();
    return () => clearTimeout(rest.current);
  }, [state.proved]);
  const asked = { solver: form.solver, objective: form.reports === 1 ? form.objective : "bayes", reports: form.reports, max_loss: metresNow, cell_m: cellM, seed: numberIn(form.seed), time_limit: numberIn(form.time_limit) };
  const running = live?.run.state === "running";
  const [plan, setPlan] = useState(null);
  useEffect(() => { // what Solve would take, once the fields rest
    setPlan(null);
    if (!data || !usable || running) return undefined;
    let stale = false;
    const rested = setTimeout(() => ask("plan", asked).then((told) => stale || setPlan(told), () => {}), REST_MS);
    return () => { stale = true; clearTimeout(rested); };
  }, [data, running, JSON.stringify(asked)]);
  const before = useRef(running);
  useEffect(() => { // the button that was pressed is disabled now: the keyboard goes on at the other
    if (before.current === running) return;
    before.current = running;
    const at = document.activeElement;
    if (at === document.body || at.disabled) document.getElementById(running ? "stop" : "solve")?.focus();
  }, [running]);

  const frame = data && widened(data.bounds, usable ? metresNow : 0);
  const reports = useMemo(() => (live?.cloud ? fanOut({ ...live.cloud, user: state.cloud.user }, stepOfFrame(frame)) : null), [live?.cloud, frame?.join()]);
  const faint = useMemo(() => state.cloud && { ...state.cloud, faint: 0.18 }, [state.cloud]);

  if (!data) return html`<section class="empty"><h2>Solve</h2><p>${state.reading ? "Reading …" : "Choose data first."}</p><button type="button" class="main" onClick=${() => actions.update({ panel: "data" })}>Go to Data</button></section>`;

  const curve = curves.bayes;
  const bayes = usable ? bestKnown(state, "bayes", metresNow) : null;
  const information = usable ? bestKnown(state, "information", metresNow) : null;
  const learned = released(live?.records ?? []);
  const solver = state.solvers.find((one) => one.name === form.solver);
  const several = form.reports !== 1;
  const start = () => actions.solve(asked);
  const stop = () => actions.attempt(() => ask("stop"));
  const resume = async () => {
    const run = await actions.attempt(() => ask("resume", { run: live.run.id, time_limit: numberIn(form.time_limit) }));
    if (run) actions.update({ live: { ...live, run }, said: `${run.solver} resumes.` });
  };

  return html`
    <section class="stage ${learned.length ? "with-curves" : ""}" aria-label="Reports">
      <${Chart2D} label="Map of reports" bounds=${frame} points=${reports ?? state.cloud} ghost=${reports ? faint : null} size=${reports ? 0.8 : 1} plane=${data.plane} tiles=${state.entered?.tiles} />
      <p class="caption">${live?.cloud ? "Reports of the same check-ins; their true places are faint." : "True places. Reports appear here while a solver works."}</p>
      <${Legend} users=${data.users} />
      ${learned.length > 0 && html`<${Curves} run=${live.run} records=${learned} bayes=${bestKnown(state, "bayes", live.run.max_loss)} />`}
    </section>
    <section class="side" aria-label="Solve">
      <h2><${Term} term="budget">Budget<//></h2>
      <p class="quiet">How far off may a report be, on average?</p>
      <div class="budget">
        <input type="range" id="budget" aria-label="Budget in metres" min=${curve ? curve.budgets[0] : 1} max=${curve ? curve.budgets.at(-1) : Math.ceil(data.most_budget)} step=${curve ? stepOf(curve) : "any"} value=${usable ? metresNow : 0} aria-valuetext="${metresNow} metres" onInput=${(event) => move(String(+(+event.target.value).toPrecision(6)))} />
        <${NumberField} id="budget-number" label="Metres" value=${budget} onChange=${move} />
      </div>
      <p class="quiet">How many reports of one user are seen together?</p>
      <${ReportsSlider} reports=${form.reports} onChange=${choose} disabled=${running} />
      ${several && data.provable && html`<${LinkedProved} linked=${curves.linked} reports=${form.reports} budget=${metresNow} checkins=${data.train} />`}
      ${several && curves.linked?.points?.length > 0 && html`<${LinkedChart} linked=${curves.linked} reports=${form.reports} budget=${usable ? metresNow : undefined} blind=${data.blind_error} />`}
      ${several && html`<p class="quiet">For one report:</p>`}
      ${data.provable ? html`<${Proved} bayes=${bayes} information=${information} refining=${refining} refused=${state.refined?.error && state.refined.max_loss === metresNow ? state.refined.error : null} waiting=${!curve} below=${curve && usable && !bayes ? curve : null} proved=${state.proved} fine=${typeof cellM === "number" ? cellM : 25} blind=${data.blind_error} />` : html`<p class="quiet">The frontier is proved for up to ${data.most_places.toLocaleString("en")} different places; this data has ${data.places.toLocaleString("en")}. Choose a smaller region, or fewer check-ins to learn from, under Data.</p>`}
      ${curve && html`<${Lines} title="The proven frontier for reports on ${curve.cell_m} m cells: best possible Bayes error at each budget" xLabel="budget, m" yLabel="Bayes error ↑" at=${usable ? metresNow : undefined}
        series=${[{ name: "no mechanism above (proved)", x: curve.budgets, y: curve.bound, look: "bound" }, { name: "reached", x: curve.budgets, y: curve.reached, look: "reached" }, ...dots(state)]}
        across=${[{ value: data.blind_error, name: "blind guess", look: "soft" }]}
        summary=${bayes ? `At ${metresNow} metres the best possible Bayes error lies between ${bayes.reached.toFixed(3)} and ${bayes.bound.toFixed(3)}` : "The proven frontier"} />`}
      <h2>Solver</h2>
      <div class="row two">
        <${Select} id="solver" label="Solver" value=${form.solver} options=${state.solvers.map((one) => [one.name, one.name])} onChange=${(word) => setForm({ solver: word })} disabled=${running} />
        <${Select} id="objective" label="Minimise" value=${several ? "linked" : form.objective} options=${several ? [["linked", `what ${reportsInWords(form.reports)} tell together`]] : objectives(data)} onChange=${(word) => setForm({ objective: word })} disabled=${running || several} />
      </div>
      <p class="quiet">${solver?.words}</p>
      <div class="row three">
        <${NumberField} id="cell" label="Cell side, m" value=${form.cell_m} onChange=${(text) => setForm({ cell_m: text })} disabled=${running} />
        <${NumberField} id="seed" label="Seed" value=${form.seed} onChange=${(text) => setForm({ seed: text })} disabled=${running} />
        <${NumberField} id="limit" label="Time limit, s" value=${form.time_limit} placeholder="none" onChange=${(text) => setForm({ time_limit: text })} disabled=${running} />
      </div>
      ${plan && html`<p id="plan" class=${plan.refused ? "over" : "quiet"} role="status">${plan.plan ?? sentence(plan.refused)}</p>`}
      <div class="row at-hand">
        <button type="button" id="solve" class="main" disabled=${running} onClick=${start}>Solve</button>
        <button type="button" id="stop" disabled=${!running} onClick=${stop}>Stop</button>
        <button type="button" disabled=${!live || live.run.state !== "interrupted"} onClick=${resume}>Resume</button>
        <button type="button" disabled=${!live?.run.solution || running || state.runs.find((one) => one.id === live.run.id)?.kept} onClick=${() => actions.keep(live.run.id)}>Keep</button>
      </div>
      ${live && html`<${Live} live=${live} running=${running} kept=${state.runs.find((one) => one.id === live.run.id)?.kept} go=${() => actions.update({ panel: "compare" })} />`}
    </section>`;
}

const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;

function Proved({ bayes, information, refining, refused, waiting, below, proved, fine, blind }) {
  if (refused) return html`<p class="proof">${sentence(refused)}</p>`;
  if (waiting) return html`<p class="proof" role="status">Proving the frontier …</p>`;
  if (below) return html`<p class="proof">The frontier below is for reports on ${below.cell_m} m cells and starts at ${below.budgets[0]} m. ${refining ? `This budget is being proved on ${fine} m cells, which may take a minute; Stop ends the solver alone …` : `This budget is proved on ${fine} m cells when the ${proved ? "slider rests" : "frontier is done"}.`}</p>`;
  if (!bayes) return html`<p class="proof">Set a budget above 0 metres.</p>`;
  return html`<div class="proof" id="proof"><dl>
    <div><dt><${Term} term="error">Bayes error ↑<//></dt><dd>${bayes.bound < blind - 1e-9 ? html`<strong>${bayes.bound.toFixed(3)}</strong> at most (proved)` : bayes.reached > blind - NEAR ? html`<strong>${blind.toFixed(3)}</strong> at most, that of a blind guess` : html`nothing proved yet: ${blind.toFixed(3)}, a blind guess's, is the most there is`}<small>${bayes.reached.toFixed(3)} is reached</small></dd></div>
    <div><dt><${Term} term="information">Information ↓<//></dt><dd>${information ? html`${information.bound > 1e-9 ? html`<strong>${information.bound.toFixed(3)}</strong> bits at least (proved)` : "nothing proved yet"}<small>${information.reached.toFixed(3)} is reached</small>` : html`<small>being proved …</small>`}</dd></div>
    </dl><p class="quiet" role="status">For reports on ${bayes.cell_m} m cells.${refining ? " Refining …" : bayes.refined ? (bayes.bound < blind - 1e-9 || bayes.reached > blind - NEAR ? " Refined." : " Its time was up before anything was proved.") : ""}</p>
  </div>`;
}

function Live({ live, running, kept, go }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!running) return undefined;
    const begin = Date.now();
    setSeconds(0);
    const clock = setInterval(() => setSeconds(Math.round((Date.now() - begin) / 1000)), 1000);
    return () => clearInterval(clock);
  }, [running, live.run.id]);
  const { run, records } = live;
  const { share, words } = progressOf(records);
  const found = run.solution;
  return html`<div class="live">
    <h2>${running ? "At work" : found ? "Result" : "Stopped"}</h2>
    ${!running && !found && html`<p class="quiet">${run.said}</p>`}
    ${running && html`<p><progress aria-label="The solver is at work" value=${share}></progress> ${nameOf(run)}${words && `, ${words}`}, ${seconds} s</p>`}
    ${found?.to_come && !running && html`<${ToCome} outlook=${found.to_come} note=${found.to_come_note} budget=${run.max_loss} />`}
    ${found && !running && (found.warnings ?? []).map((sentence) => html`<p class="over" role="alert" key=${sentence}>${sentence}</p>`)}
    ${found && !running && html`<p id="result">On training data: <${Term} term="loss">loss<//> ${metres(found.loss.value)} of ${metres(run.max_loss)}; <${Term} term="error">Bayes error<//> <strong>${found.bayes_error.value.toFixed(3)}</strong>${found.bayes_error.kind === "exact" ? "" : " (estimated)"}; <${Term} term="information">information<//> ${found.information_bits.value.toFixed(3)} bits; ${found.seconds.toFixed(1)} s.</p>${found.linked && html`<p id="result-linked">${reportsInWords(found.linked.reports)} seen together: Bayes error <strong>${found.linked.bayes_error.kind === "exact" ? "" : "≈"}${found.linked.bayes_error.value.toFixed(3)}</strong>; least overlap of two users ${found.linked.overlap.toFixed(3)}.</p>`}${found.proved && html`<p id="result-proved">${found.proved}</p>`}<p class="quiet">${run.said}</p>`}
    ${kept && html`<button type="button" class="go" onClick=${go}>Next: compare →</button>`}
  </div>`;
}

/** What to expect of check-ins to come: figures with their intervals. */
function ToCome({ outlook, note, budget }) {
  const within = (estimate, shown) => `${shown(estimate.value)} (${shown(estimate.low)} to ${shown(estimate.high)})`;
  const three = (value) => value.toFixed(3);
  return html`<div id="to-come">
    <p><${Term} term="to-come">On check-ins to come<//>: <${Term} term="loss">loss<//> <strong>${within(outlook.loss, metres)}</strong> of ${metres(budget)}; <${Term} term="error">Bayes error<//> <strong>${within(outlook.bayes_error, three)}</strong>; <${Term} term="information">information<//> ${within(outlook.information_bits, three)} bits; <${Term} term="exposed">exposed<//> ${within(outlook.exposed, (share) => percent(share, 1))}.</p>
    <p class="quiet">${note} ${Math.round(100 * outlook.confidence)}% intervals.</p>
  </div>`;
}

/** Loss against the budget and leakage against the bound, round by round. */
function Curves({ run, records, bayes }) {
  const groups = [...new Set(records.map((record) => record.lattice_m ?? null))];
  const looks = ["one", "two", "three"];
  const lines = (value) =>
    groups.map((group, at) => {
      const rows = records.filter((record) => (record.lattice_m ?? null) === group && Number.isFinite(value(record)));
      return { name: group === null ? run.solver : `lattice ${+group.toPrecision(4)} m`, look: looks[at % 3], x: rows.map((record, step) => record.round ?? record.step ?? step), y: rows.map(value) };
    });
  const held = records.some((record) => record.validation_bayes_error !== undefined);
  const on = held ? "validation data" : "training data";
  return html`<div class="curves">
    <${Lines} title="Loss, against the budget" xLabel="round" yLabel="metres" series=${lines((record) => record.loss)} across=${[{ value: run.max_loss, name: "budget" }]} summary="Loss by round, against the budget of ${run.max_loss} metres" />
    <${Lines} title="Bayes error on ${on}, against the bound" xLabel="round" yLabel="Bayes error ↑" series=${lines((record) => record.validation_bayes_error ?? record.bayes_error)} across=${bayes ? [{ value: bayes.bound, name: held ? "no mechanism above (training data)" : "no mechanism above" }] : []} summary="Bayes error by round, against the proven bound" />
  </div>`;
}

/** Finished runs as points on the frontier's axes. */
function dots(state) {
  return state.runs
    .filter((run) => run.solution)
    .map((run) => ({ name: nameOf(run), look: "dot", x: [run.solution.loss.value], y: [run.solution.bayes_error.value] }));
}

function stepOf(curve) {
  return curve.budgets.length > 1 ? +(curve.budgets[1] - curve.budgets[0]).toPrecision(6) : 1;
}

function widened([x0, y0, x1, y1], budget) {
  const side = Math.max(x1 - x0, y1 - y0);
  const margin = Math.ceil(Math.min(budget, 0.5 * side) / (0.1 * side || 1)) * 0.1 * side;
  return [x0 - margin, y0 - margin, x1 + margin, y1 + margin];
}

function objectives(data) {
  const words = [["bayes", "right guesses (Bayes)"], ["information", "information (bits)"], ["two-guesses", "right guesses, of two tries"], ["guess-or-pass", "right guesses, if it may pass"]];
  return [...words, ...data.users.slice(0, 20).map((user) => [`target:${user.name}`, `telling ${user.name} from the rest`])];
}
