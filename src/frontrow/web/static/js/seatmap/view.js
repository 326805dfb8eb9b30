// @ts-check
/** Draws the map on two canvases, sections first, seats once they are large enough to tell apart.
 *
 * `base` holds sections or seats: panning moves the picture and paints only the strips that came into view, zooming
 * scales the last picture and paints crisply once it rests, a live change repaints single seats. `over` holds names,
 * focus and hover, and is drawn anew each time (cheap). */
import { FREE, HELD, STEP_FREE } from "./model.js";

export const PITCH = 9;
const SEATS_FROM_PX = 5, TIERS = 6, RESTS_MS = 90, SLOW_PAINT_MS = 10, MAX_DPR = 2;
const LOOK_HELD = TIERS, LOOK_SOLD = TIERS + 1, LOOK_MINE = TIERS + 2;
/** @typedef {{k: number, x: number, y: number}} Camera css pixels = world * k + (x, y) */
/** @typedef {{maxPrice: number, stepFree: boolean, heat: boolean, focus: number, focusSection: number, hover: number}} Options */

export class SeatView {
  #frame = 0; #rest = 0; #valid = false; #cost_ms = 0; #k = 0; #ox = 0; #oy = 0; #spriteKey = "";
  /** @type {HTMLCanvasElement[]} */ #sprites = [];
  /** @type {{k: number, ox: number, oy: number} | null} */ #scaled = null;
  #copy = document.createElement("canvas");
  /** @type {Record<"bg" | "floor" | "ink" | "held" | "sold" | "mine" | "font", string> & {tiers: string[]}} */ theme = /** @type {any} */ ({});

  /** @param {HTMLCanvasElement} base @param {HTMLCanvasElement} over @param {import("./model.js").SeatModel} model */
  constructor(base, over, model) {
    this.base = base; this.over = over; this.model = model;
    this.g = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d", { alpha: false }));
    this.og = /** @type {CanvasRenderingContext2D} */ (over.getContext("2d"));
    this.w = this.h = 0; this.dpr = 1; this.paint_ms = 0;
    /** @type {Camera} */ this.camera = { k: 1, x: 0, y: 0 };
    /** @type {Options} */ this.options = { maxPrice: Infinity, stepFree: false, heat: false, focus: -1, focusSection: -1, hover: -1 };
    this.outlines = model.sections.map(({ outline }) => {
      const path = new Path2D();
      for (let i = 0; i < outline.length; i += 2) if (i) path.lineTo(outline[i], outline[i + 1]); else path.moveTo(outline[0], outline[1]);
      path.closePath();
      return path;
    });
    this.readTheme();
  }

  /** Read the design tokens; again when the colour scheme changes. */
  readTheme() {
    const style = getComputedStyle(this.base), token = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.theme = {
      bg: token("--map-bg"), floor: token("--map-floor"), ink: token("--map-ink"), held: token("--seat-held"), sold: token("--seat-sold"), mine: token("--seat-mine"),
      tiers: Array.from({ length: TIERS }, (_, n) => token(`--tier-${n}`)), font: token("--font-sans") || "sans-serif",
    };
    this.#spriteKey = "";
    this.#valid = false;
  }

  resize() {
    const box = this.base.getBoundingClientRect();
    this.dpr = Math.min(devicePixelRatio || 1, MAX_DPR);
    this.w = box.width; this.h = box.height;
    for (const canvas of [this.base, this.over, this.#copy]) { canvas.width = Math.max(1, Math.round(box.width * this.dpr)); canvas.height = Math.max(1, Math.round(box.height * this.dpr)); }
    this.#valid = false;
    this.#scaled = null;
  }

  /** The camera that shows everything beside the legend and the buttons. @returns {Camera} */
  fit(pad = 16, bottom = this.w > 700 && !this.options.heat ? 72 : pad, right = this.w <= 700 && !this.options.heat ? 68 : pad) {
    const [x0, y0, x1, y1] = this.#extent(), k = Math.min((this.w - pad - right) / (x1 - x0), (this.h - pad - bottom) / (y1 - y0));
    return { k, x: pad + (this.w - pad - right - (x1 - x0) * k) / 2 - x0 * k, y: pad + (this.h - pad - bottom - (y1 - y0) * k) / 2 - y0 * k };
  }

  #extent() {
    let [x0, y0, x1, y1] = this.model.box;
    for (const d of this.model.doc.decor) { x0 = Math.min(x0, d.x); y0 = Math.min(y0, d.y); x1 = Math.max(x1, d.x + d.w); y1 = Math.max(y1, d.y + d.h); }
    return [x0 - 10, y0 - 10, x1 + 10, y1 + 10];
  }

  /** The distance between two seats in css pixels. */
  get seatPx() { return PITCH * this.camera.k; }
  get showsSeats() { return this.seatPx >= SEATS_FROM_PX && !this.options.heat; }
  request() { this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.draw(); }); }
  invalidate() { this.#valid = false; this.request(); }

  draw() {
    const began = performance.now(), { camera, dpr, base } = this;
    const k = camera.k * dpr, ox = Math.round(camera.x * dpr), oy = Math.round(camera.y * dpr);
    if (this.#valid && k === this.#k) this.#pan(ox, oy, base.width, base.height);
    else if ((this.#valid && this.#cost_ms > SLOW_PAINT_MS && this.#k) || this.#scaled) this.#scale(k, ox, oy);
    else { this.#k = k; this.#ox = ox; this.#oy = oy; this.#all(); }
    this.#names();
    this.paint_ms = performance.now() - began;
  }

  #all() {
    const began = performance.now();
    this.#paint(0, 0, this.base.width, this.base.height);
    this.#cost_ms = performance.now() - began;
    this.#valid = true;
    this.#scaled = null;
    clearTimeout(this.#rest);
  }

  /** @param {number} ox @param {number} oy @param {number} width @param {number} height */
  #pan(ox, oy, width, height) {
    const { g } = this, dx = ox - this.#ox, dy = oy - this.#oy;
    this.#ox = ox; this.#oy = oy;
    if (!dx && !dy) return;
    if (Math.abs(dx) >= width || Math.abs(dy) >= height) { this.#all(); return; }
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.globalCompositeOperation = "copy";
    g.drawImage(this.base, dx, dy);
    g.globalCompositeOperation = "source-over";
    if (dx) this.#paint(dx > 0 ? 0 : width + dx, 0, Math.abs(dx), height);
    if (dy) this.#paint(0, dy > 0 ? 0 : height + dy, width, Math.abs(dy));
  }

  /** @param {number} k @param {number} ox @param {number} oy */
  #scale(k, ox, oy) {
    const { g, base } = this;
    if (!this.#scaled) {
      /** @type {CanvasRenderingContext2D} */ (this.#copy.getContext("2d", { alpha: false })).drawImage(base, 0, 0);
      this.#scaled = { k: this.#k, ox: this.#ox, oy: this.#oy };
    }
    const from = this.#scaled, q = k / from.k;
    this.#k = k; this.#ox = ox; this.#oy = oy; this.#valid = false;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = this.theme.bg;
    g.fillRect(0, 0, base.width, base.height);
    g.drawImage(this.#copy, ox - from.ox * q, oy - from.oy * q, base.width * q, base.height * q);
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => { this.#all(); this.#names(); }, RESTS_MS);
  }

  /** @param {number} z diameter in device pixels */
  #pictures(z) {
    const { theme } = this, key = `${z} ${theme.bg}`;
    if (key === this.#spriteKey) return this.#sprites;
    const make = (/** @type {(g: CanvasRenderingContext2D) => void} */ paint) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = z + 2;
      const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      g.translate(z / 2 + 1, z / 2 + 1);
      paint(g);
      return canvas;
    };
    const disc = (/** @type {string} */ colour, size = 1) => make((g) => { g.fillStyle = colour; g.beginPath(); g.arc(0, 0, (z / 2) * size, 0, 7); g.fill(); });
    this.#spriteKey = key;
    return (this.#sprites = [
      ...theme.tiers.map((colour) => disc(colour)),
      make((g) => { g.strokeStyle = theme.held; g.lineWidth = Math.max(1, z * 0.1); g.beginPath(); g.arc(0, 0, z * 0.36, 0, 7); g.stroke(); }),
      disc(theme.sold, 0.55),
      make((g) => {
        g.fillStyle = theme.mine; g.beginPath(); g.roundRect(-z / 2, -z / 2, z, z, z * 0.28); g.fill();
        g.strokeStyle = theme.bg; g.lineWidth = Math.max(1.5, z * 0.13); g.beginPath(); g.moveTo(-z * 0.22, z * 0.02); g.lineTo(-z * 0.05, z * 0.18); g.lineTo(z * 0.24, -z * 0.18); g.stroke();
      }),
    ]);
  }

  /** @param {number} i */
  #look(i) {
    const { model, options } = this, state = model.state[i];
    if (model.mine.has(i)) return LOOK_MINE;
    if (state === HELD) return LOOK_HELD;
    return state === FREE && model.fits(i, options.maxPrice, options.stepFree) ? model.tier[i] % TIERS : LOOK_SOLD;
  }

  /** Paint one rectangle (device pixels) of the base. @param {number} rx @param {number} ry @param {number} rw @param {number} rh */
  #paint(rx, ry, rw, rh) {
    const { g, model, theme, dpr } = this, k = this.#k, ox = this.#ox, oy = this.#oy;
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.beginPath(); g.rect(rx, ry, rw, rh); g.clip();
    g.fillStyle = theme.bg; g.fillRect(rx, ry, rw, rh);
    g.setTransform(k, 0, 0, k, ox, oy);
    this.#decor(g);
    const x0 = (rx - ox) / k - 6, y0 = (ry - oy) / k - 6, x1 = (rx + rw - ox) / k + 6, y1 = (ry + rh - oy) / k + 6;
    const seats = (PITCH * k) / dpr >= SEATS_FROM_PX && !this.options.heat, shown = [];
    for (let i = 0; i < model.sections.length; i++) { const b = model.sections[i].box; if (b[2] > x0 - 8 && b[0] < x1 + 8 && b[3] > y0 - 8 && b[1] < y1 + 8) shown.push(i); }
    for (const i of shown) this.#sectionShape(i, seats);
    if (seats) this.#seats(shown, x0, y0, x1, y1);
    g.restore();
  }

  /** @param {CanvasRenderingContext2D} g */
  #decor(g) {
    const { theme } = this;
    for (const d of this.model.doc.decor) {
      g.fillStyle = d.t === "ellipse" ? theme.floor : theme.ink;
      g.beginPath();
      if (d.t === "ellipse") g.ellipse(d.x + d.w / 2, d.y + d.h / 2, d.w / 2, d.h / 2, 0, 0, 7); else g.roundRect(d.x, d.y, d.w, d.h, Math.min(d.w, d.h) * 0.12);
      g.fill();
      if (!d.label) continue;
      const tall = d.h > d.w, size = Math.min(Math.min(d.w, d.h) * 0.42, (Math.max(d.w, d.h) * 1.2) / d.label.length);
      g.save(); g.translate(d.x + d.w / 2, d.y + d.h / 2);
      if (tall) g.rotate(-Math.PI / 2);
      g.fillStyle = d.t === "ellipse" ? theme.ink : theme.bg; g.font = `700 ${size}px ${theme.font}`; g.textAlign = "center"; g.textBaseline = "middle";
      g.fillText(d.label, 0, size * 0.06);
      g.restore();
    }
  }

  /** @param {number} i @param {boolean} seats */
  #sectionShape(i, seats) {
    const { g, theme, options } = this, one = this.model.sections[i], share = one.free / Math.max(1, one.n);
    g.fillStyle = theme.floor; g.fill(this.outlines[i]);
    if (options.heat) { g.globalAlpha = 0.1 + 0.9 * (1 - share); g.fillStyle = theme.tiers[1]; g.fill(this.outlines[i]); }
    else if ((!seats || one.area) && one.free && one.low <= options.maxPrice) { g.globalAlpha = 0.25 + 0.7 * Math.sqrt(share); g.fillStyle = theme.tiers[one.tier % TIERS]; g.fill(this.outlines[i]); }
    g.globalAlpha = 1;
  }

  /** @param {number[]} shown @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  #seats(shown, x0, y0, x1, y1) {
    const { g, model } = this, k = this.#k, z = Math.max(3, Math.round(7.4 * k)), pictures = this.#pictures(z), half = z / 2 + 1;
    g.setTransform(1, 0, 0, 1, 0, 0);
    for (const s of shown) {
      const one = model.sections[s];
      if (one.area) continue;
      for (let i = one.base; i < one.base + one.n; i++) {
        const x = model.x[i], y = model.y[i];
        if (x > x0 && y > y0 && x < x1 && y < y1) g.drawImage(pictures[this.#look(i)], Math.floor(x * k + this.#ox - half), Math.floor(y * k + this.#oy - half));
      }
    }
  }

  /** Repaint seats whose state changed; the overview as a whole (cheap). @param {number[]} changed */
  touch(changed) {
    if (!changed.length) return;
    if (!this.#valid || !this.showsSeats) { this.invalidate(); return; }
    const { g, model, base, theme } = this, k = this.#k, z = Math.max(3, Math.round(7.4 * k)), pictures = this.#pictures(z), half = z / 2 + 1;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = theme.floor;
    for (const i of changed) {
      const x = Math.floor(model.x[i] * k + this.#ox - half), y = Math.floor(model.y[i] * k + this.#oy - half);
      if (x < -z - 2 || y < -z - 2 || x > base.width || y > base.height || model.sections[model.section[i]].area) continue;
      g.fillRect(x, y, z + 2, z + 2);
      g.drawImage(pictures[this.#look(i)], x, y);
    }
    this.#names();
  }

  #names() {
    const { og: g, camera, dpr, model, options, theme } = this, k = camera.k;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.over.width, this.over.height);
    g.setTransform(k * dpr, 0, 0, k * dpr, Math.round(camera.x * dpr), Math.round(camera.y * dpr));
    g.textAlign = "center"; g.textBaseline = "middle";
    const x0 = -camera.x / k, y0 = -camera.y / k, x1 = (this.w - camera.x) / k, y1 = (this.h - camera.y) / k, seats = this.showsSeats;
    const shown = model.sections.filter(({ box: b }) => b[2] > x0 && b[0] < x1 && b[3] > y0 && b[1] < y1);
    if (!seats) this.#sectionNames(g, shown);
    else if (this.seatPx < 14) this.#sectionNames(g, shown, 16 / k);
    else if (this.seatPx >= 20) this.#numbers(g, shown, x0, y0, x1, y1);
    if (options.focusSection >= 0 && (!seats || options.focus < 0 || model.sections[options.focusSection].area)) this.#ring(g, this.outlines[options.focusSection]);
    if (seats) for (const i of [options.hover, options.focus]) if (i >= 0) { const ring = new Path2D(); ring.arc(model.x[i], model.y[i], 5.6, 0, 7); this.#ring(g, ring); }
    g.fillStyle = theme.ink;
  }

  /** @param {CanvasRenderingContext2D} g @param {Path2D} path */
  #ring(g, path) {
    for (const [width, colour] of /** @type {[number, string][]} */ ([[5, this.theme.bg], [2.5, this.theme.ink]])) { g.lineWidth = width / this.camera.k; g.strokeStyle = colour; g.stroke(path); }
  }

  /** @param {CanvasRenderingContext2D} g @param {import("./model.js").Section[]} shown @param {number} [halo] size of names over seats */
  #sectionNames(g, shown, halo = 0) {
    const { theme, camera, options } = this;
    for (const one of shown) {
      const room = one.area || one.outline.length === 8 ? Math.min((one.box[2] - one.box[0]) / Math.max(2, one.id.length * 0.62), one.box[3] - one.box[1]) : 62;
      const size = halo || Math.min(Math.max(30, 11 / camera.k), room);
      if (size * camera.k < 7.5) continue;
      g.font = `${halo ? 700 : 650} ${size}px ${theme.font}`;
      if (halo) { g.lineWidth = 5 / camera.k; g.strokeStyle = theme.bg; g.strokeText(one.id, one.cx, one.cy); }
      const share = one.free / Math.max(1, one.n), solid = options.heat ? share < 0.35 : share > 0.36 && one.low <= options.maxPrice;
      g.fillStyle = halo || !solid ? theme.ink : theme.bg;
      g.fillText(one.id, one.cx, one.cy);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {import("./model.js").Section[]} shown @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  #numbers(g, shown, x0, y0, x1, y1) {
    const { model, theme } = this;
    g.font = `600 3.2px ${theme.font}`;
    g.fillStyle = theme.bg;
    for (const one of shown) for (let r = 0; !one.area && r < one.rows.length; r++) {
      const [from, to] = model.rowEnds(one, r), odd = model.odd.get(from);
      for (let i = from; i < to; i++) {
        const x = model.x[i], y = model.y[i];
        if (x < x0 || x > x1 || y < y0 || y > y1 || model.state[i] !== FREE || model.mine.has(i)) continue;
        g.fillText((model.flags[i] & STEP_FREE ? "♿" : "") || (odd?.[i - from] ?? String(i - from + 1)), x, y + 0.15);
      }
    }
  }
}
