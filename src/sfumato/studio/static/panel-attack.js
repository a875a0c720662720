// Attack yourself: guess who sent a report, twenty rounds, beside the best possible score.

import { ask } from "./api.js";
import { html, useEffect, useMemo, useState } from "./html.js";
import { Bars, Chart2D, Select, Swatch, Term, firstChoice, nameOf } from "./parts.js";

const MOST = 40; // users to choose from

export function AttackPanel({ state, actions }) {
  const { data, game } = state;
  const runs = state.runs.filter((run) => run.solution);
  const [chosen, choose] = useState(game?.run ?? firstChoice(runs));
  const [marks, setMarks] = useState([]);
  const verdict = game?.verdict;
  useEffect(() => {
    const at = verdict ? game.shown : game?.report;
    setMarks(at ? [{ x: at[0], y: at[1], fill: "#ffffff", ring: "#c00000", radius: 8 }] : []);
  }, [game]);

  const everybody = useMemo(() => state.cloud && { ...state.cloud, faint: 0.7 }, [state.cloud]);

  if (!data || !runs.length) return html`<section class="empty"><h2>Attack yourself</h2><p>You will see reports and guess who sent each. First there must be a mechanism to attack: choose data and solve.</p><button type="button" class="main" onClick=${() => actions.update({ panel: data ? "solve" : "data" })}>Go to ${data ? "Solve" : "Data"}</button></section>`;

  const begin = async () => {
    const dealt = await actions.attempt(() => ask("attack", { run: chosen || firstChoice(runs) }));
    if (dealt) actions.update({ game: dealt, said: "Round 1 of 20. Who sent this report?" });
  };
  const guess = async (user) => {
    const told = await actions.attempt(() => ask("guess", { user }));
    if (!told) return;
    const best = told.best_guesses.length > 1 ? `${told.best_guesses.length} guesses were equally good.` : `The best guess was ${told.best_guesses[0]}.`;
    const said = `${told.right ? "Right" : "Wrong"}: it was ${told.sender}. ${best} Score ${told.score} of ${told.round}.`;
    actions.update({ game: { ...told, verdict: told, shown: game.report, mine: user }, said });
  };
  const next = () => {
    actions.update({ game: { ...game, verdict: null }, said: `Round ${game.round + 1} of ${game.rounds}. Who sent this report?` });
  };
  const over = game && game.round >= game.rounds && verdict;
  const run = game && state.runs.find((one) => one.id === game.run);
  return html`
    <section class="stage" aria-label="Report">
      <${Chart2D} label=${game?.report ? `Map with one report, at ${(verdict ? game.shown : game.report)?.map((value) => value.toFixed(0)).join(", ")} metres east and north of the middle, and the true places of everybody` : "Map of true places"} bounds=${data.bounds} ghost=${everybody} marks=${marks} plane=${data.plane} tiles=${state.entered?.tiles} />
      <p class="caption">${game ? "The ringed white dot is the report. The small marks are where all users usually are: the adversary knows that." : "The small marks are where all users usually are: the adversary knows that."}</p>
    </section>
    <section class="side" aria-label="Attack yourself">
      <h2>Attack yourself</h2>
      ${!game && html`<p>A check-in is drawn, the mechanism makes a report of it, and you see only the report. Who sent it? Twenty rounds. Next to your score is the best that any adversary can expect.</p>`}
      ${(!game || over) && html`<${Select} id="against" label="Against" value=${chosen || firstChoice(runs)} options=${runs.map((one) => [one.id, nameOf(one)])} onChange=${choose} />
        <div class="row"><button type="button" class="main" onClick=${begin}>${game ? "Play again" : "Begin"}</button></div>`}
      ${game && html`<p class="score" id="score">Round <strong>${Math.min(game.round + (verdict ? 0 : 1), game.rounds)}</strong> of ${game.rounds} against ${run?.solver}. You: <strong>${game.score}</strong> right. The best adversary on the same reports: <strong>${game.best_score}</strong>.</p>`}
      ${game && !verdict && html`<div class="guesses" role="group" aria-label="Who sent this report?">
        ${data.users.slice(0, MOST).map((user, at) => html`<button type="button" key=${user.name} onClick=${() => guess(user.name)}><${Swatch} user=${at} />${user.name}</button>`)}
        ${data.users.length > MOST && html`<p class="quiet">The first ${MOST} of ${data.users.length.toLocaleString("en")} users are listed; the sender may be another. With fewer users, chosen under Data, the game is fair.</p>`}
      </div>`}
      ${verdict && html`<div class="verdict">
        <p><strong>${verdict.right ? "Right." : "Wrong."}</strong> You said ${game.mine}; it was <strong>${verdict.sender}</strong>. ${verdict.best_guesses.length > 1 ? `${verdict.best_guesses.length} guesses were equally good. ` : ""}What the best adversary believed:</p>
        <${Bars} users=${data.users} values=${verdict.belief} sender=${verdict.sender} label="Belief of the best adversary" />
        ${!over && html`<button type="button" class="main" onClick=${next}>Next report</button>`}
      </div>`}
      ${over && html`<div id="final"><h3>You were right ${game.score} times of ${game.rounds}.</h3>
        <p>The best possible adversary expects <strong>${game.best_expected.toFixed(1)}</strong> of ${game.rounds} (1 − <${Term} term="error">Bayes error<//> = ${game.best_share.toFixed(3)}); on these very reports it was right ${game.best_score} times. A blind guess expects ${((1 - data.blind_error) * game.rounds).toFixed(1)}.</p>
        <p class="quiet">${run?.solution.bayes_error.kind === "exact" ? "The Bayes error is computed from the mechanism's law on the training data, from which these check-ins were drawn: no adversary can do better on average." : "The Bayes error of this mechanism is estimated from samples."} Twenty rounds are few: scores a little above it are luck.</p></div>`}
    </section>`;
}
