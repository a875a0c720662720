// The map: points of all users on a plain ground, with scale bar and graticule. Three canvases, drawn once a frame at most.

import { colourOf, isDark, outline } from "./looks.js";
import { drawGround, drawScaleBar } from "./ground.js";

const FEW = 4000; // points that are drawn with their own marker; more are stamped as small squares
const CLICK_PX = 5;
const STEP_PX = 60;

export class MapView {
  constructor(box, onPick, onSquare) {
    this.box = box;
    this.onPick = onPick;
    this.onSquare = onSquare;
    [this.ground, this.dots, this.top] = box.querySelectorAll("canvas");
    this.view = { x: 0, y: 0, scale: 1 };
    this.scene = { points: null, ghost: null, heat: null, marks: [], plane: null, tiles: null, square: null, size: 1 };
    this.pointers = new Map();
    this.fitted = null;
    this.asked = false;
    this.frames = 0;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(box);
    this.top.addEventListener("pointerdown", (event) => this.down(event));
    this.top.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) this.top.addEventListener(name, (event) => this.up(event));
    this.top.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.top.addEventListener("keydown", (event) => this.key(event));
    this.onTheme = () => this.draw();
    addEventListener("themechange", this.onTheme);
    this.resize();
  }

  close() {
    this.watch.disconnect();
    removeEventListener("themechange", this.onTheme);
  }

  show(scene) {
    Object.assign(this.scene, scene);
    this.draw();
  }

  /** Bring bounds [x0, y0, x1, y1] into view, with a margin. */
  fit(bounds) {
    this.fitted = bounds;
    if (!bounds || !this.width) return;
    const [x0, y0, x1, y1] = bounds;
    const side = Math.max(x1 - x0, y1 - y0, 1);
    const margin = 0.12 * side;
    this.view.x = (x0 + x1) / 2;
    this.view.y = (y0 + y1) / 2;
    this.view.scale = Math.min(this.width / (x1 - x0 + 2 * margin), this.height / (y1 - y0 + 2 * margin));
    this.draw();
  }

  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const { clientWidth, clientHeight } = this.box;
    if (!clientWidth || !clientHeight) return;
    const first = !this.width;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = ratio;
    for (const canvas of [this.ground, this.dots, this.top]) {
      canvas.width = Math.round(clientWidth * ratio);
      canvas.height = Math.round(clientHeight * ratio);
    }
    if (first || this.untouched) this.fit(this.fitted);
    else this.draw();
  }

  get untouched() {
    return !this.touched;
  }

  draw() {
    if (this.asked || !this.width) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.frames += 1;
      this.drawNow();
    });
  }

  drawNow() {
    const style = getComputedStyle(this.box);
    const ink = { ground: style.getPropertyValue("--ground"), line: style.getPropertyValue("--graticule"), text: style.getPropertyValue("--soft"), heat: style.getPropertyValue("--heat") };
    const pen = this.pen(this.ground);
    drawGround(pen, this, ink);
    if (this.scene.heat) this.drawHeat(pen, ink);
    this.drawPoints();
    this.drawTop(ink);
  }

  pen(canvas) {
    const pen = canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    return pen;
  }

  toScreen(x, y) {
    return [(x - this.view.x) * this.view.scale + this.width / 2, (this.view.y - y) * this.view.scale + this.height / 2];
  }

  toMetres(px, py) {
    return [(px - this.width / 2) / this.view.scale + this.view.x, this.view.y - (py - this.height / 2) / this.view.scale];
  }

  drawHeat(pen, ink) {
    const { cells, cell_m: side } = this.scene.heat;
    const most = cells.reduce((top, cell) => Math.max(top, cell[2]), 0);
    const size = Math.max(side * this.view.scale, 3);
    pen.fillStyle = ink.heat;
    for (const [x, y, chance] of cells) {
      const [px, py] = this.toScreen(x, y);
      pen.globalAlpha = 0.03 + 0.85 * Math.sqrt(chance / most);
      pen.fillRect(px - size / 2, py - size / 2, size, size);
    }
    pen.globalAlpha = 1;
  }

  drawPoints() {
    const pen = this.pen(this.dots);
    const { points, ghost, size } = this.scene;
    const many = (points?.x.length ?? 0) + (ghost?.x.length ?? 0) > FEW;
    if (many) {
      this.stamp([ghost, points]);
      return;
    }
    if (ghost) this.sprites(pen, ghost, 2.2, ghost.faint ?? 0.35);
    if (points) this.sprites(pen, points, 3.6 * size, 0.9);
  }

  /** Few points: each its own marker, drawn once and copied. */
  sprites(pen, { x, y, user }, radius, alpha) {
    const made = new Map();
    const dark = isDark();
    pen.globalAlpha = alpha;
    for (let at = 0; at < x.length; at += 1) {
      const [px, py] = this.toScreen(x[at], y[at]);
      if (px < -9 || py < -9 || px > this.width + 9 || py > this.height + 9) continue;
      const who = user[at];
      if (!made.has(who)) made.set(who, sprite(who, radius, this.ratio, dark));
      const picture = made.get(who);
      const half = picture.width / this.ratio / 2;
      pen.drawImage(picture, px - half, py - half, 2 * half, 2 * half);
    }
    pen.globalAlpha = 1;
  }

  /** Many points: coloured squares written straight into the pixels. */
  stamp(sets) {
    const { width, height } = this.dots;
    const pen = this.dots.getContext("2d");
    if (this.pixels?.width !== width || this.pixels?.height !== height) this.pixels = pen.createImageData(width, height);
    const words = new Uint32Array(this.pixels.data.buffer);
    words.fill(0);
    const dark = isDark();
    const scale = this.view.scale * this.ratio;
    const left = width / 2 - this.view.x * scale;
    const top = height / 2 + this.view.y * scale;
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
    pen.putImageData(this.pixels, 0, 0);
  }

  drawTop(ink) {
    const pen = this.pen(this.top);
    const dark = isDark();
    for (const mark of this.scene.marks) {
      const [px, py] = this.toScreen(mark.x, mark.y);
      pen.save();
      pen.translate(px, py);
      pen.lineWidth = mark.ring ? 2.5 : 1.5;
      pen.strokeStyle = mark.ring ?? (dark ? "#000" : "#fff");
      pen.fillStyle = mark.user === undefined ? (mark.fill ?? ink.text) : colourOf(mark.user, dark);
      const path = new Path2D(outline(mark.user ?? 0, mark.radius ?? 6));
      pen.fill(path);
      pen.stroke(path);
      pen.restore();
    }
    if (this.drawnSquare ?? this.scene.square) {
      const [x0, y0, x1, y1] = this.drawnSquare ?? this.scene.square;
      const [left, bottom] = this.toScreen(Math.min(x0, x1), Math.min(y0, y1));
      const [right, up] = this.toScreen(Math.max(x0, x1), Math.max(y0, y1));
      pen.strokeStyle = ink.text;
      pen.setLineDash([6, 4]);
      pen.lineWidth = 2;
      pen.strokeRect(left, up, right - left, bottom - up);
      pen.setLineDash([]);
    }
    drawScaleBar(pen, this, ink);
  }

  // What the person does -------------------------------------------------------------------------

  place(event) {
    const box = this.top.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    this.top.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.start = this.place(event);
    this.moved = false;
    if (this.scene.drawing) this.anchor = this.toMetres(...this.start);
  }

  move(event) {
    if (!this.pointers.has(event.pointerId)) return;
    const now = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (Math.hypot(now[0] - this.start[0], now[1] - this.start[1]) > CLICK_PX) this.moved = true;
    if (this.anchor && this.pointers.size === 1) {
      const [x, y] = this.toMetres(...now);
      const side = Math.max(Math.abs(x - this.anchor[0]), Math.abs(y - this.anchor[1]));
      const [x0, y0] = this.anchor;
      this.drawnSquare = [x0, y0, x0 + side * Math.sign(x - x0 || 1), y0 + side * Math.sign(y - y0 || 1)];
    } else if (this.pointers.size === 2) {
      const [one, other] = [...this.pointers.values()];
      const middle = [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
      const apart = Math.hypot(one[0] - other[0], one[1] - other[1]);
      this.pointers.set(event.pointerId, now);
      const [first, second] = [...this.pointers.values()];
      this.zoom(Math.hypot(first[0] - second[0], first[1] - second[1]) / Math.max(apart, 1), ...middle);
    } else {
      this.touched = true;
      this.view.x -= (now[0] - before[0]) / this.view.scale;
      this.view.y += (now[1] - before[1]) / this.view.scale;
    }
    this.pointers.set(event.pointerId, now);
    this.draw();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.drawnSquare) this.onSquare?.(this.drawnSquare);
    else if (!this.moved && event.type === "pointerup") this.onPick?.(...this.toMetres(...this.place(event)));
    this.anchor = this.drawnSquare = null;
    this.draw();
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 400), ...this.place(event));
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    this.touched = true;
    const [x, y] = this.toMetres(px, py);
    this.view.scale = Math.min(Math.max(this.view.scale * factor, 1e-4), 50);
    const [nowX, nowY] = this.toMetres(px, py);
    this.view.x += x - nowX;
    this.view.y += y - nowY;
    this.draw();
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (steps[event.key]) {
      this.touched = true;
      this.view.x += (steps[event.key][0] * STEP_PX) / this.view.scale;
      this.view.y += (steps[event.key][1] * STEP_PX) / this.view.scale;
      this.draw();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0" || event.key === "Home") {
      this.touched = false;
      this.fit(this.fitted);
    } else if (event.key === "Enter") this.onPick?.(this.view.x, this.view.y);
    else return;
    event.preventDefault();
  }
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
