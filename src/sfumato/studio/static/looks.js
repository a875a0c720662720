// The colour and the marker of a user: the same as in the report (sfumato.render.figures).

export const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000"];
export const MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<"];

let looks = null; // which look each user has; null: as numbered

/** Where there are more users than looks, the most frequent have looks of their own. */
export function rankUsers(users) {
  looks = users.length > COLOURS.length * MARKERS.length ? new Uint32Array(users.length) : null;
  if (looks) users.map((user, at) => [user.count, at]).sort(([one], [other]) => other - one).forEach(([, at], rank) => { looks[at] = rank; });
}

const lookOf = (user) => looks?.[user] ?? user;

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Black would vanish on a dark ground; there it is white. */
export function colourOf(user, dark = isDark()) {
  const colour = COLOURS[lookOf(user) % COLOURS.length];
  return dark && colour === "#000000" ? "#ffffff" : colour;
}

export function markerOf(user) {
  return MARKERS[lookOf(user) % MARKERS.length];
}

const CORNERS = {
  s: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  "^": [[0, -1.05], [1, 0.85], [-1, 0.85]],
  v: [[0, 1.05], [1, -0.85], [-1, -0.85]],
  "<": [[-1.05, 0], [0.85, 1], [0.85, -1]],
  D: [[0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0]],
  P: [[-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4]],
  X: [[-0.55, -1.1], [0, -0.55], [0.55, -1.1], [1.1, -0.55], [0.55, 0], [1.1, 0.55], [0.55, 1.1], [0, 0.55], [-0.55, 1.1], [-1.1, 0.55], [-0.55, 0], [-1.1, -0.55]],
};

/** The outline of a user's marker about (0, 0), as an SVG path, which a canvas can draw too. */
export function outline(user, radius) {
  const corners = CORNERS[markerOf(user)];
  if (!corners) return `M${radius},0A${radius},${radius} 0 1 1 ${-radius},0A${radius},${radius} 0 1 1 ${radius},0Z`;
  return `M${corners.map(([x, y]) => `${(x * radius).toFixed(2)},${(y * radius).toFixed(2)}`).join("L")}Z`;
}
