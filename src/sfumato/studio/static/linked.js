// Linked reports: how many of one user's reports are seen together, and what can be hidden then.

import { html } from "./html.js";
import { Lines, metres } from "./parts.js";

export const STOPS = [1, 5, 10, 50, "endless"];
const LOOKS = ["bound", "two", "three", "four"];

/** "1 report", "10 reports", "endless reports". */
export function reportsInWords(reports) {
  return `${reports} report${reports === 1 ? "" : "s"}`;
}

/** A slider over the stops. */
export function ReportsSlider({ reports, onChange, disabled }) {
  return html`<div class="budget">
    <input type="range" id="reports" aria-label="Reports seen together" min="0" max=${STOPS.length - 1} step="1" value=${STOPS.indexOf(reports)} aria-valuetext=${reportsInWords(reports)} disabled=${disabled} onInput=${(event) => onChange(STOPS[+event.target.value])} />
    <output id="reports-now" for="reports">${reportsInWords(reports)}</output>
  </div>`;
}

/** What is known at a budget: what is reached at a smaller one is reached here; the bound of a larger one holds here. */
export function linkedAt(linked, budget) {
  const points = linked?.points ?? [];
  const below = points.filter((point) => point.max_loss <= budget * (1 + 1e-9)).at(-1);
  const above = points.find((point) => point.max_loss >= budget * (1 - 1e-9));
  return below ? { errors: below.bayes_errors, overlap: below.overlap, bound: above?.overlap_bound ?? 1 } : null;
}

/** The figures at the budget, and from which loss on linking is useless. */
export function LinkedProved({ linked, reports, budget, checkins }) {
  if (linked?.error) return html`<p class="proof" id="linked">Linked reports: ${linked.error}.</p>`;
  const known = linkedAt(linked, budget);
  if (!known) return html`<p class="proof" id="linked" role="status">${linked?.done ? `The trade-off starts at ${metres(linked.points[0].max_loss)}.` : "Computing linked reports …"}</p>`;
  const error = known.errors[linked.reports.indexOf(reports)];
  const end = linked.endless_budget;
  return html`<div class="proof" id="linked"><dl>
    ${error && html`<div><dt>Bayes error of ${reportsInWords(reports)} ↑</dt><dd><strong>${error.kind === "exact" ? "" : "≈"}${error.value.toFixed(3)}</strong> is reached<small>by a mechanism made for them</small></dd></div>`}
    <div><dt>Least overlap of two users ↑</dt><dd><strong>${known.bound.toFixed(3)}</strong> at most (proved)<small>${known.overlap.toFixed(3)} is reached; 1: never told apart</small></dd></div>
    </dl>
    ${end && html`<p>From <strong>${metres(end.loss)}</strong> on linking is useless.<small>proved: not below ${metres(end.bound)}</small></p>`}
    <p class="quiet" role="status">For reports on ${linked.cell_m} m cells, on ${linked.checkins === checkins ? "the training check-ins" : `${linked.checkins} of the ${checkins.toLocaleString("en")} training check-ins`}.${linked.done ? "" : " Going on …"}</p>
  </div>`;
}

/** One curve per number of reports; the chosen one is thick, the endless budget is marked. */
export function LinkedChart({ linked, reports, budget, blind }) {
  const x = linked.points.map((point) => point.max_loss);
  const series = linked.reports.map((count, at) => ({
    name: reportsInWords(count),
    look: `${LOOKS[at % LOOKS.length]} ${count === reports ? "chosen" : ""}`,
    x,
    y: linked.points.map((point) => point.bayes_errors[at].value),
  }));
  const end = linked.endless_budget;
  return html`<${Lines} title="What is reached: Bayes error of linked reports at each budget" xLabel="budget, m" yLabel="Bayes error ↑" at=${budget} series=${series}
    across=${[{ value: blind, name: "blind guess", look: "soft" }]}
    marks=${end ? [{ value: end.loss, name: "linking is useless" }] : []}
    summary=${`Bayes error against the budget for ${linked.reports.join(", ")} linked reports${end ? `; from ${metres(end.loss)} on linking is useless` : ""}`} />`;
}
