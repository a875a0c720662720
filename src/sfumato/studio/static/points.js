// The points of all users: few with their own markers, many as small squares.

import { colourOf, isDark, outline } from "./looks.js";

const FEW = 4000; // points that are drawn with their own marker; more are stamped as small squares

/** All points of the scene, on the canvas of their own. */
export function drawPoints(map) {
  const pen = map.pen(map.dots);
  const { points, ghost, size } = map.scene;
  const many = (points?.x.length ?? 0) + (ghost?.x.length ?? 0) > FEW;
  if (many) {
    stamp(map, [ghost, points]);
    return;
  }
  if (ghost) sprites(map, pen, ghost, 2.2, ghost.faint ?? 0.35);
  if (points) sprites(map, pen, points, 3.6 * size, 0.9);
}

/** Few points: each its own marker, drawn once and copied. */
function sprites(map, pen, { x, y, user }, radius, alpha) {
  const made = new Map();
  const dark = isDark();
  pen.globalAlpha = alpha;
  for (let at = 0; at < x.length; at += 1) {
    const [px, py] = map.toScreen(x[at], y[at]);
    if (px < -9 || py < -9 || px > map.width + 9 || py > map.height + 9) continue;
    const who = user[at];
    if (!made.has(who)) made.set(who, sprite(who, radius, map.ratio, dark));
    const picture = made.get(who);
    const half = picture.width / map.ratio / 2;
    pen.drawImage(picture, px - half, py - half, 2 * half, 2 * half);
  }
  pen.globalAlpha = 1;
}

/** Many points: coloured squares written straight into the pixels. */
function stamp(map, sets) {
  const { width, height } = map.dots;
  const pen = map.dots.getContext("2d");
  if (map.pixels?.width !== width || map.pixels?.height !== height) map.pixels = pen.createImageData(width, height);
  const words = new Uint32Array(map.pixels.data.buffer);
  words.fill(0);
  const dark = isDark();
  const scale = map.view.scale * map.ratio;
  const left = width / 2 - map.view.x * scale;
  const top = height / 2 + map.view.y * scale;
  for (const set of sets) {
    if (!set) continue;
    const { x, y, user } = set;
    const palette = paletteOf(dark, set.faint);
    const count = x.length;
    const reach = count > 30000 ? 1 : 2;
    for (let at = 0; at < count; at += 1) {
      const px = (left + x[at] * scale) | 0;
      const py = (top - y[at] * scale) | 0;
      if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
      const colour = palette[user[at] % palette.length];
      for (let row = py - reach; row < py + reach; row += 1) {
        const first = row * width + px - reach;
        for (let word = first; word < first + 2 * reach; word += 1) words[word] = colour;
      }
    }
  }
  pen.putImageData(map.pixels, 0, 0);
}

function sprite(user, radius, ratio, dark) {
  const side = Math.ceil((2.6 * radius + 3) * ratio);
  const picture = document.createElement("canvas");
  picture.width = picture.height = side;
  const pen = picture.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, side / 2, side / 2);
  const path = new Path2D(outline(user, radius));
  pen.fillStyle = colourOf(user, dark);
  pen.strokeStyle = dark ? "rgba(0,0,0,.7)" : "rgba(255,255,255,.85)";
  pen.lineWidth = 0.7;
  pen.fill(path);
  pen.stroke(path);
  return picture;
}

function paletteOf(dark, faint) {
  const alpha = Math.round(255 * (faint ?? 1));
  return Uint32Array.from({ length: 7 }, (_, user) => {
    const colour = parseInt(colourOf(user, dark).slice(1), 16);
    return ((alpha << 24) | ((colour & 255) << 16) | (colour & 0xff00) | (colour >> 16)) >>> 0;
  });
}
