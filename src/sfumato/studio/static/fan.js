// Points that share one place, laid on a sunflower about it: its area grows with their number (as in the report).

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

export function fanOut({ x, y, user }, stepM) {
  const rank = new Map();
  const [across, up] = [new Float32Array(x.length), new Float32Array(x.length)];
  for (let at = 0; at < x.length; at += 1) {
    const place = `${x[at].toFixed(2)},${y[at].toFixed(2)}`;
    const number = rank.get(place) ?? 0;
    rank.set(place, number + 1);
    const away = stepM * Math.sqrt(number);
    across[at] = x[at] + away * Math.cos(number * GOLDEN_ANGLE);
    up[at] = y[at] + away * Math.sin(number * GOLDEN_ANGLE);
  }
  return { x: across, y: up, user };
}

/** The step that the report takes: a share of the side of what is shown. */
export function stepOf([x0, y0, x1, y1]) {
  return 0.0042 * Math.max(x1 - x0, y1 - y0);
}
