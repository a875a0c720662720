// What is proved at a budget: read off the bracket of the frontier, never between the lines.

/** {reached, bound, cell_m} at a budget: reached by mixing two neighbours; the bound of the next larger budget holds for this one, too. */
export function provedAt(curve, budget) {
  if (!curve || !(budget > 0)) return null;
  const { budgets, reached, bound } = curve;
  const above = budgets.findIndex((value) => value >= budget - 1e-9);
  if (budget < budgets[0] - 1e-9) return null;
  if (above < 0) return { reached: reached.at(-1), bound: curve.objective === "bayes" ? Math.max(...bound) : Math.min(...bound), cell_m: curve.cell_m, beyond: true };
  if (above === 0 || Math.abs(budgets[above] - budget) < 1e-9) return { reached: reached[above], bound: bound[above], cell_m: curve.cell_m };
  const share = (budget - budgets[above - 1]) / (budgets[above] - budgets[above - 1]);
  return { reached: (1 - share) * reached[above - 1] + share * reached[above], bound: bound[above], cell_m: curve.cell_m };
}

/** The best that is known at a budget on the cells that will be released, else on the coarser ones of the curve. */
export function bestKnown(state, objective, budget) {
  const fine = state.refined;
  if (fine && !fine.error && Math.abs(fine.max_loss - budget) < 1e-9) return { reached: fine[objective][0], bound: fine[objective][1], cell_m: fine.cell_m, refined: true };
  return provedAt(state.curves[objective], budget);
}
