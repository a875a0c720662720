// How far a solver is, from the records of its rounds.

const FOLDS_SHARE = 2 / 3; // four nets of half the steps take about twice the time of the one that is released

/** The rounds of the net that is released. */
export function released(records) {
  return records.filter((record) => record.folds === undefined && record.proof_bound === undefined);
}

/** The share that is done (undefined where the solver does not tell) and words for the phase; folds come first, so the share never falls. */
export function progressOf(records) {
  const last = records.at(-1);
  if (!last) return { share: undefined, words: "" };
  if (last.proof_bound !== undefined) {
    const [low, high] = [last.proof_bound, last.proof_least].map((leakage) => leakage.toFixed(4));
    return { share: undefined, words: `proving: the least leakage possible lies between ${low} and ${high}` };
  }
  const crossFitted = records.find((record) => record.folds !== undefined);
  if (last.folds !== undefined) return { share: last.done * FOLDS_SHARE, words: `1 of 2: cross-fitting on ${last.folds} folds, round ${last.round + 1}` };
  const round = `round ${(last.round ?? last.step ?? records.length - 1) + 1}`;
  if (!crossFitted || last.done === undefined) return { share: last.done, words: round };
  return { share: FOLDS_SHARE + last.done * (1 - FOLDS_SHARE), words: `2 of 2: learning, ${round}` };
}
