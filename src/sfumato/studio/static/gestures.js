// What the person does on the map: drag, pinch, turn the wheel, press keys, draw a square.

const CLICK_PX = 5;
const STEP_PX = 60;

export class Gestures {
  constructor(map) {
    this.map = map;
    this.pointers = new Map();
    const { top } = map;
    top.addEventListener("pointerdown", (event) => this.down(event));
    top.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) top.addEventListener(name, (event) => this.up(event));
    top.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    top.addEventListener("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.map.top.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    this.map.top.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    this.start = this.place(event);
    this.moved = false;
    if (this.map.scene.drawing) this.anchor = this.map.toMetres(...this.start);
  }

  move(event) {
    if (!this.pointers.has(event.pointerId)) return;
    const now = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (Math.hypot(now[0] - this.start[0], now[1] - this.start[1]) > CLICK_PX) this.moved = true;
    if (this.anchor && this.pointers.size === 1) {
      const [x, y] = this.map.toMetres(...now);
      const side = Math.max(Math.abs(x - this.anchor[0]), Math.abs(y - this.anchor[1]));
      const [x0, y0] = this.anchor;
      this.map.drawnSquare = [x0, y0, x0 + side * Math.sign(x - x0 || 1), y0 + side * Math.sign(y - y0 || 1)];
    } else if (this.pointers.size === 2) {
      const [one, other] = [...this.pointers.values()];
      const middle = [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
      const apart = Math.hypot(one[0] - other[0], one[1] - other[1]);
      this.pointers.set(event.pointerId, now);
      const [first, second] = [...this.pointers.values()];
      this.map.zoom(Math.hypot(first[0] - second[0], first[1] - second[1]) / Math.max(apart, 1), ...middle);
    } else {
      this.map.touched = true;
      this.map.view.x -= (now[0] - before[0]) / this.map.view.scale;
      this.map.view.y += (now[1] - before[1]) / this.map.view.scale;
    }
    this.pointers.set(event.pointerId, now);
    this.map.draw();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.map.drawnSquare) this.map.onSquare?.(this.map.drawnSquare);
    else if (!this.moved && event.type === "pointerup") this.map.onPick?.(...this.map.toMetres(...this.place(event)));
    this.anchor = this.map.drawnSquare = null;
    this.map.draw();
  }

  wheel(event) {
    event.preventDefault();
    this.map.zoom(Math.exp(-event.deltaY / 400), ...this.place(event));
  }

  key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (steps[event.key]) {
      this.map.touched = true;
      this.map.view.x += (steps[event.key][0] * STEP_PX) / this.map.view.scale;
      this.map.view.y += (steps[event.key][1] * STEP_PX) / this.map.view.scale;
      this.map.draw();
    } else if (event.key === "+" || event.key === "=") this.map.zoom(1.4);
    else if (event.key === "-") this.map.zoom(1 / 1.4);
    else if (event.key === "0" || event.key === "Home") {
      this.map.touched = false;
      this.map.fit(this.map.fitted);
    } else if (event.key === "Enter") this.map.onPick?.(this.map.view.x, this.map.view.y);
    else return;
    event.preventDefault();
  }
}
