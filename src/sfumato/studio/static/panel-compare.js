// Compare: kept runs side by side; where each sends a point, and what the adversary then believes.

import { ask, unpack } from "./api.js";
import { fanOut, stepOf } from "./fan.js";
import { html, useEffect, useMemo, useRef, useState } from "./html.js";
import { Bars, Chart2D, Head, Legend, metres, nameOf, percent } from "./parts.js";

const BASELINES = ["laplace", "coin", "exact"];
const MOST = 40; // users in the table

export function ComparePanel({ state, actions }) {
  const { data, comparison, look } = state;
  const kept = state.runs.filter((run) => run.kept && run.solution);
  const [sample, setSample] = useState(0);
  const asked = useRef(0);
  const busy = state.keeping || (state.live && state.live.run.state === "running");
  const wanted = kept.map((run) => run.id).join();

  useEffect(() => {
    if (kept.length && !busy && !state.comparing && comparison?.runs.join() !== wanted) {
      actions.update({ comparing: true });
      actions.attempt(() => ask("compare")).then((begun) => begun === null && actions.update({ comparing: false }));
    }
  }, [wanted, state.comparing, busy]);

  if (!data) return html`<section class="empty"><h2>Compare</h2><p>${state.reading ? "Reading …" : "Choose data first."}</p><button type="button" class="main" onClick=${() => actions.update({ panel: "data" })}>Go to Data</button></section>`;

  const budget = kept.at(-1)?.max_loss ?? Number(String(state.budget).replace(",", "."));
  const cell = kept.at(-1)?.cell_m ?? state.form.cell_m;
  const missing = BASELINES.filter((name) => !kept.some((run) => run.solver === name && run.max_loss === budget));
  const fill = () => actions.solveAll(missing.map((solver) => ({ solver, objective: "bayes", max_loss: budget, cell_m: Number(cell), seed: 0, time_limit: null })));
  const pick = async (x, y) => {
    asked.current += 1;
    const mine = asked.current;
    const found = await actions.attempt(() => ask("preview", { x, y, runs: kept.map((run) => run.id) }));
    if (found && mine === asked.current) {
      setSample(0);
      actions.update({ look: found, said: `A check-in of ${found.user}. Each mechanism's reports for it are shown.` });
    }
  };
  const step = (by) => {
    const count = state.cloud.x.length;
    const at = (((state.looking ?? -1) + by) % count + count) % count;
    actions.update({ looking: at });
    pick(state.cloud.x[at], state.cloud.y[at]);
  };
  const near = look && around(look, Math.max(...kept.map((run) => run.max_loss)));
  const rows = comparison && comparison.runs.join() === wanted ? comparison.comparison.mechanisms : null;
  return html`<section class="wide" aria-label="Compare">
    <div class="row heading"><h2>Compare</h2>
      ${missing.length > 0 && html`<button type="button" class=${kept.length ? "" : "main"} disabled=${busy} onClick=${fill}>Add ${missing.join(", ")} at ${budget} m</button>`}
      ${busy && html`<span role="status"><progress aria-label="A solver is at work"></progress> ${state.live?.run.solver} …</span>`}
    </div>
    ${!kept.length && html`<p>Keep at least one run under Solve, or add the baselines.</p>`}
    ${kept.length > 0 && html`
      <p class="quiet">Pick a check-in on a map to see where each mechanism sends it:${" "}
        <button type="button" onClick=${() => step(-1)}>‹ previous check-in</button> <button type="button" onClick=${() => step(1)}>next check-in ›</button>
        ${look && html` <button type="button" onClick=${() => actions.update({ look: null })}>all check-ins</button>`}
        ${look && html` <strong>A check-in of ${look.user}.</strong>`}</p>
      <div class="maps">${kept.map((run, at) => html`<${RunMap} key=${run.id} run=${run} at=${at} state=${state} rows=${rows} near=${near} sample=${sample} setSample=${setSample} pick=${pick} drop=${() => actions.keep(run.id, false)} cloud=${rows ? comparison.clouds[at] : null} />`)}</div>
      <${Legend} users=${data.users} />
      <p class="busy" role="status">${state.comparing ? "Comparing on the same data …" : ""}</p>
      ${rows && html`<${Figures} rows=${rows} runs=${kept} on=${comparison.comparison.on} terms=${state.entered?.terms} />`}`}
  </section>`;
}

/** A square about a check-in that holds all its reports. */
function around({ truth: [x, y], runs }, budget) {
  const far = Object.values(runs).flatMap(({ samples }) => samples.flatMap(([toX, toY]) => [Math.abs(toX - x), Math.abs(toY - y)]));
  const half = Math.max(2 * budget, ...far);
  return [x - half, y - half, x + half, y + half];
}

function RunMap({ run, state, near, sample, setSample, pick, drop, cloud }) {
  const { data, look } = state;
  const seen = look?.runs[run.id];
  const sender = look && data.users.findIndex((one) => one.name === look.user);
  const [marks, setMarks] = useState([]);
  useEffect(() => {
    setMarks(seen ? [...seen.samples.map(([x, y], at) => ({ x, y, fill: "#ffffff", ring: at === sample ? "#000000" : "#666666", radius: at === sample ? 6 : 4 })), { x: look.truth[0], y: look.truth[1], user: sender, radius: 7 }] : []);
  }, [look, sample]);
  const heat = useMemo(() => (seen?.heat ? { cells: seen.heat, cell_m: seen.cell_m } : null), [seen]);
  const side = Math.max(data.bounds[2] - data.bounds[0], data.bounds[3] - data.bounds[1]);
  const margin = Math.min(run.max_loss, 0.5 * side);
  const bounds = [data.bounds[0] - margin, data.bounds[1] - margin, data.bounds[2] + margin, data.bounds[3] + margin];
  const close = near && near[2] - near[0] < side / 2; // in a large region its reports would be one dot
  const reports = useMemo(() => (cloud ? fanOut({ ...unpack(cloud), user: state.cloud.user }, stepOf(bounds)) : null), [cloud]);
  const faint = useMemo(() => ({ ...state.cloud, faint: 0.25 }), [state.cloud]);
  return html`<article class="run" aria-label="${run.solver} at ${run.max_loss} m">
    <h3>${run.solver} <small>${run.max_loss} m${run.objective === "bayes" ? "" : `, ${run.objective}`}${(run.reports ?? 1) === 1 ? "" : `, ${run.reports} reports`}</small><button type="button" class="plain" aria-label="Remove ${run.id}" onClick=${drop}>✕</button></h3>
    <${Chart2D} label="Reports of ${run.solver}" bounds=${close ? near : bounds} points=${seen ? null : reports} ghost=${seen ? faint : null} heat=${heat} marks=${marks} plane=${data.plane} tiles=${state.entered?.tiles} onPick=${pick} size=${0.75} />
    ${seen && html`<div class="belief">
      <p>${seen.loss === null ? "" : `This check-in: ${metres(seen.loss)} off on average. `}Ten reports were drawn; after report${" "}
        <select aria-label="Report of ${run.solver}" value=${sample} onChange=${(event) => setSample(Number(event.target.value))}>${seen.samples.map((_, at) => html`<option key=${at} value=${at} selected=${at === sample}>${at + 1}</option>`)}</select>${" "}
        the adversary believes:</p>
      <${Bars} users=${data.users} values=${seen.beliefs[sample]} sender=${look.user} label="Belief after report ${sample + 1} of ${run.solver}" />
    </div>`}
  </article>`;
}

// each column of the table: what its head means, and the head
const HEADS = [
  ["to-come", "to come: loss, m"],
  ["to-come", "to come: Bayes error ↑"],
  ["loss", "loss, m"],
  ["error", "Bayes error ↑"],
  ["information", "information, bits ↓"],
  ["exposed", "exposed ↓"],
  ["worst", "worst report ↓"],
  ["learnt", "learnt error ↑"],
  ["gap", "gap ↓"],
];

function Figures({ rows, runs, on, terms }) {
  const about = (estimate, digits) => `${estimate.kind === "estimate" ? "≈" : ""}${estimate.value.toFixed(digits)}`;
  const over = (row) => row.over_by > 0;
  const overToCome = (row) => row.max_loss !== null && row.to_come.loss.low > row.max_loss * (1 + 1e-9);
  const toCome = rows.some((row) => row.to_come);
  const within = (estimate, digits) => `${estimate.value.toFixed(digits)} (${estimate.low.toFixed(digits)} to ${estimate.high.toFixed(digits)})`;
  const gap = (row) => row.proved_on_training_data?.gap;
  return html`<div class="scroll"><table id="figures">
    <caption><span class="note">On ${on.name}: ${on.rows.toLocaleString("en")} check-ins of ${on.users.length} users. ↑ higher is more private, ↓ lower is. ≈ estimated from samples, otherwise computed. <span class="nowrap">! over its budget on this data.</span>${toCome && " To come: with 95% intervals, cross-fitted on training data or, marked h, measured on held-out check-ins."}</span></caption>
    <thead><tr><th scope="col">mechanism</th>${HEADS.filter(([term]) => toCome || term !== "to-come").map(([term, words]) => html`<${Head} key=${words} terms=${terms} term=${term}>${words}<//>`)}</tr></thead>
    <tbody>${rows.map((row, at) => html`<tr key=${runs[at].id}><th scope="row">${nameOf(runs[at])}</th>
      ${toCome && (row.to_come ? html`<td class=${overToCome(row) ? "over" : ""}>${within(row.to_come.loss, 1)}${overToCome(row) ? " !" : ""}${row.to_come.folds ? "" : " h"}</td><td>${within(row.to_come.bayes_error, 3)}</td>` : html`<td>–</td><td>–</td>`)}
      <td class=${over(row) ? "over" : ""}>${about(row.loss, 1)}${over(row) ? " !" : ""}</td><td>${about(row.bayes_error, 3)}</td><td>${about(row.information_bits, 3)}</td>
      <td>${percent(row.exposed, 1)}</td><td>${percent(row.worst_report)}</td><td>${row.learnt_error ? about(row.learnt_error, 3) : "–"}</td><td>${gap(row) === null || gap(row) === undefined ? "–" : gap(row).toFixed(4)}</td></tr>`)}</tbody>
  </table></div>
  <div class="scroll"><table id="users">
    <caption><span class="note">Each user: loss in metres, and how often the best guess misses them.${rows[0].per_user.length > MOST && ` The first ${MOST} of ${rows[0].per_user.length.toLocaleString("en")}; the report has more.`}</span></caption>
    <thead><tr><th scope="col">user</th>${rows.map((row, at) => html`<th scope="col" key=${runs[at].id}>${nameOf(runs[at])}</th>`)}</tr></thead>
    <tbody>${rows[0].per_user.slice(0, MOST).map((user, who) => html`<tr key=${user.user}><th scope="row">${user.user}</th>${rows.map((row, at) => html`<td key=${runs[at].id}>${row.per_user[who].loss.toFixed(1)} m, ${percent(row.per_user[who].error)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
