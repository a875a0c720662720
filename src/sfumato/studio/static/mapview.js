// The map: points of all users on a plain ground, with scale bar and graticule. Three canvases, drawn once a frame at most.

import { colourOf, isDark, outline } from "./looks.js";
import { Gestures } from "./gestures.js";
import { drawGround, drawScaleBar } from "./ground.js";
import { drawPoints } from "./points.js";

export class MapView {
  constructor(box, onPick, onSquare) {
    this.box = box;
    this.onPick = onPick;
    this.onSquare = onSquare;
    [this.ground, this.dots, this.top] = box.querySelectorAll("canvas");
    this.view = { x: 0, y: 0, scale: 1 };
    this.scene = { points: null, ghost: null, heat: null, marks: [], plane: null, tiles: null, square: null, size: 1 };
    this.fitted = null;
    this.asked = false;
    this.frames = 0;
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(box);
    this.gestures = new Gestures(this);
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
    drawPoints(this);
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

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    this.touched = true;
    const [x, y] = this.toMetres(px, py);
    this.view.scale = Math.min(Math.max(this.view.scale * factor, 1e-4), 50);
    const [nowX, nowY] = this.toMetres(px, py);
    this.view.x += x - nowX;
    this.view.y += y - nowY;
    this.draw();
  }
}
