// What lies below the points: a plain ground, a graticule, street tiles or lines if the person gave some, and the scale bar.

import { plane as planeAt } from "./plane.js";

const NICE = [1, 2, 5];
const TILE_PX = 256;
const MOST_TILES = 64;
const tiles = new Map();
const streets = { lines: [], plane: null, path: null };

/** Draw these lines, each of latitudes and longitudes, below every map. */
export function useStreets(lines) {
  Object.assign(streets, { lines, plane: null });
}

export function drawGround(pen, map, ink) {
  pen.fillStyle = ink.ground;
  pen.fillRect(0, 0, map.width, map.height);
  const { plane: centre, tiles: address } = map.scene;
  const plane = centre && { ...centre, ...planeAt(centre) };
  if (plane && address) drawTiles(pen, map, plane, address);
  if (plane && streets.lines.length) drawStreets(pen, map, plane, ink);
  pen.strokeStyle = ink.line;
  pen.fillStyle = ink.text;
  pen.lineWidth = 1;
  pen.font = "11px system-ui, sans-serif";
  if (plane) degrees(pen, map, plane, ink);
  else metres(pen, map, ink);
}

/** The largest of 1, 2, 5 times a power of ten that is at most `goal`. */
export function nice(goal) {
  const unit = 10 ** Math.floor(Math.log10(goal));
  return unit * Math.max(...NICE.filter((step) => step * unit <= goal * (1 + 1e-9)));
}

function label(pen, ink, text, x, y) {
  pen.save();
  pen.strokeStyle = ink.ground;
  pen.lineWidth = 3;
  pen.strokeText(text, x, y);
  pen.fillText(text, x, y);
  pen.restore();
}

/** Those labels that the edge does not cut and the scale bar does not cover. */
function write(pen, map, ink, labels) {
  for (const [text, x, y] of labels) {
    if (x + pen.measureText(text).width <= map.width && y < map.height - 40) label(pen, ink, text, x, y);
  }
}

function line(pen, ends) {
  pen.beginPath();
  pen.moveTo(...ends[0].map((value) => Math.round(value) + 0.5));
  for (const end of ends.slice(1)) pen.lineTo(...end.map((value) => Math.round(value) + 0.5));
  pen.stroke();
}

/** Pixels of some latitudes and longitudes; null if one is too far off for a flat picture. */
function onScreen(map, plane, places) {
  const metres = places.map(([latitude, longitude]) => plane.toMetres(latitude, longitude));
  return metres.every(Boolean) ? metres.map((point) => map.toScreen(...point)) : null;
}

function degrees(pen, map, plane, ink) {
  const [south, west] = plane.toDegrees(map.toMetres(0, map.height));
  const [north, east] = plane.toDegrees(map.toMetres(map.width, 0));
  if (!(north > south && east > west)) return;
  const tall = nice((north - south) / 2.5);
  const wide = nice((east - west) / (map.width > 420 ? 3.5 : 2.2));
  const digits = (step) => Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const labels = []; // written when all lines are drawn
  for (let at = Math.ceil(south / tall) * tall; at < north; at += tall) {
    const ends = onScreen(map, plane, [west, (west + east) / 2, east].map((longitude) => [at, longitude]));
    if (!ends) continue;
    line(pen, ends);
    if (ends[0][1] > 40) labels.push([`${Math.abs(at).toFixed(digits(tall))}° ${at < 0 ? "S" : "N"}`, 6, ends[0][1] - 4]);
  }
  for (let at = Math.ceil(west / wide) * wide; at < east; at += wide) {
    const ends = onScreen(map, plane, [north, (north + south) / 2, south].map((latitude) => [latitude, at]));
    if (!ends) continue;
    line(pen, ends);
    labels.push([`${Math.abs(at).toFixed(digits(wide))}° ${at < 0 ? "W" : "E"}`, ends[0][0] + 4, 14]);
  }
  write(pen, map, ink, labels);
}

function metres(pen, map, ink) {
  const step = nice(map.width / map.view.scale / 3.5);
  const [x0, y0] = map.toMetres(0, map.height);
  const [x1, y1] = map.toMetres(map.width, 0);
  const labels = [];
  for (let at = Math.ceil(y0 / step) * step; at < y1; at += step) {
    const [, py] = map.toScreen(0, at);
    line(pen, [[0, py], [map.width, py]]);
    if (py > 40) labels.push([`${+at.toPrecision(6)} m`, 6, py - 4]);
  }
  for (let at = Math.ceil(x0 / step) * step; at < x1; at += step) {
    const [px] = map.toScreen(at, 0);
    line(pen, [[px, 0], [px, map.height]]);
    labels.push([`${+at.toPrecision(6)} m`, px + 4, 14]);
  }
  write(pen, map, ink, labels);
}

export function drawScaleBar(pen, map, ink) {
  const length = nice(Math.min(map.width * 0.3, 160) / map.view.scale);
  const px = length * map.view.scale;
  const label = length >= 1000 ? `${length / 1000} km` : length >= 1 ? `${length} m` : `${+(length * 100).toPrecision(2)} cm`;
  const [left, bottom] = [12, map.height - 12];
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = ink.ground;
  pen.globalAlpha = 0.8;
  pen.fillRect(left - 6, bottom - 24, Math.max(px, pen.measureText(label).width) + 12, 32);
  pen.globalAlpha = 1;
  pen.fillStyle = ink.text;
  pen.fillText(label, left, bottom - 9);
  pen.fillRect(left, bottom - 4, px, 4);
}

/** Lines in metres, made once for a plane, moved and scaled by the pen. */
function drawStreets(pen, map, plane, ink) {
  if (streets.plane !== map.scene.plane) {
    Object.assign(streets, { plane: map.scene.plane, path: new Path2D() });
    for (const line of streets.lines) {
      let begun = false;
      for (const place of line) {
        const point = plane.toMetres(...place);
        if (point) streets.path[begun ? "lineTo" : "moveTo"](...point);
        begun = Boolean(point);
      }
    }
  }
  const { x, y, scale } = map.view;
  pen.save();
  pen.translate(map.width / 2 - x * scale, map.height / 2 + y * scale);
  pen.scale(scale, -scale);
  pen.lineWidth = 1.5 / scale;
  pen.strokeStyle = ink.text;
  pen.globalAlpha = 0.35;
  pen.stroke(streets.path);
  pen.restore();
}

/** Web Mercator tiles, each laid between its corners on the plane. */
function drawTiles(pen, map, plane, address) {
  const metresPerPixel = (40075016.7 * Math.cos((plane.latitude * Math.PI) / 180)) / TILE_PX;
  const zoom = Math.min(19, Math.max(0, Math.round(Math.log2(metresPerPixel * map.view.scale))));
  const count = 2 ** zoom;
  const column = (longitude) => ((longitude + 180) / 360) * count;
  const row = (latitude) => ((1 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / Math.PI) / 2) * count;
  const longitudeOf = (x) => (x / count) * 360 - 180;
  const latitudeOf = (y) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / count))) * 180) / Math.PI;
  const [south, west] = plane.toDegrees(map.toMetres(0, map.height));
  const [north, east] = plane.toDegrees(map.toMetres(map.width, 0));
  const [x0, x1, y0, y1] = [column(west), column(east), row(north), row(south)].map(Math.floor);
  if ((x1 - x0 + 1) * (y1 - y0 + 1) > MOST_TILES) return;
  for (let x = x0; x <= x1; x += 1) {
    for (let y = y0; y <= y1; y += 1) {
      const picture = tile(address.replace("{z}", zoom).replace("{x}", x).replace("{y}", y), map);
      if (!picture) continue;
      const corners = onScreen(map, plane, [[latitudeOf(y), longitudeOf(x)], [latitudeOf(y + 1), longitudeOf(x + 1)]]);
      if (!corners) continue;
      const [[left, top], [right, bottom]] = corners;
      pen.drawImage(picture, left, top, right - left + 0.5, bottom - top + 0.5);
    }
  }
}

function tile(address, map) {
  if (!tiles.has(address)) {
    const picture = new Image();
    picture.onload = () => map.draw();
    picture.src = address;
    tiles.set(address, picture);
  }
  const picture = tiles.get(address);
  return picture.complete && picture.naturalWidth ? picture : null;
}
