// Take it away: the report, the run folder, the device bundle, the command line that repeats it.

import { ask, fileAddress } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { Select, firstChoice, nameOf } from "./parts.js";

export function DownloadPanel({ state, actions }) {
  const runs = state.runs.filter((run) => run.solution);
  const [chosen, choose] = useState(firstChoice(runs));
  const [offer, setOffer] = useState(undefined); // null once refused
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    let stale = false; // an answer about another run that comes late is not shown
    setCopied(false);
    setOffer(undefined);
    if (chosen) actions.attempt(() => ask("download", { run: chosen })).then((found) => stale || setOffer(found));
    return () => {
      stale = true;
    };
  }, [chosen, state.comparison]);
  if (!runs.length) return html`<section class="empty"><h2>Take it away</h2><p>There is nothing to take yet: solve first.</p><button type="button" class="main" onClick=${() => actions.update({ panel: state.data ? "solve" : "data" })}>Go to ${state.data ? "Solve" : "Data"}</button></section>`;
  const run = runs.find((one) => one.id === chosen);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(offer.command);
      setCopied(true);
    } catch {
      actions.update({ error: "The browser does not let this page copy; select the line and copy it by hand." });
    }
  };
  const report = async () => {
    if (!run.kept) await actions.keep(run.id);
    actions.update({ panel: "compare" });
  };
  return html`<section class="wide take" aria-label="Take it away">
    <h2>Take it away</h2>
    <${Select} id="which" label="Run" value=${chosen} options=${runs.map((one) => [one.id, `${nameOf(one)}${one.kept ? "" : " (not kept)"}`])} onChange=${choose} />
    ${chosen && offer === undefined && html`<p class="quiet" role="status">Preparing the files …</p>`}
    ${offer && html`<ul class="cards">
      <li><h3>Report</h3><p>What was compared, figures and pictures, in one HTML file for people. It contains true locations.</p>
        ${offer.report ? html`<a class="button" href=${fileAddress(chosen, "report.html")} download="report.html">Download report.html</a>` : html`<button type="button" onClick=${report}>Compare it first</button>`}</li>
      <li><h3>Run folder</h3><p>The mechanism, its settings, figures and certificate: what <code>sfumato measure</code>, <code>compare</code>, <code>certify</code> and <code>sanitize</code> read.</p>
        <a class="button" href=${fileAddress(chosen, "run.zip")} download="${chosen}.zip">Download ${chosen}.zip</a></li>
      <li><h3>Device bundle</h3><p>The mechanism for a phone or a browser: ONNX, manifest, test vectors and a page that runs it. It lists no check-ins.</p>
        ${offer.bundle ? html`<a class="button" href=${fileAddress(chosen, "bundle.zip")} download="${chosen}-device.zip">Download ${chosen}-device.zip</a>` : html`<p class="quiet" id="no-bundle">None for this run: ${offer.bundle_refused}</p>`}</li>
      <li class="whole"><h3>Command line</h3><p>Repeats this run, in the folder of the data.</p>
        <pre id="command" tabindex="0">${offer.command}</pre><button type="button" onClick=${copy}>${copied ? "Copied" : "Copy"}</button></li>
    </ul>`}
  </section>`;
}
