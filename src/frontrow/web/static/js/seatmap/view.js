// @ts-check
/** Draws the map on two canvases, sections first, seats once they are large enough to tell apart.
 *
 * `base` holds sections or seats, `over` names, focus and hover. Both reach beyond what is seen on every side, so a pan
 * only moves them (no pixel is painted) until it comes to an edge; then the picture is shifted inside the canvas and
 * the strips that are new are painted. A zoom that is dear stretches them and paints crisply once it rests; a live
 * change repaints single seats. What is seen is painted first, the rest when the page has nothing else to do. */
import { FREE, HELD, STEP_FREE } from "./model.js";
import { sprites } from "./sprites.js";

export const PITCH = 9;
const SEATS_FROM_PX = 5,
  TIERS = 6,
  RESTS_MS = 90,
  SLOW_PAINT_MS = 10,
  MAX_DPR = 2,
  BEYOND = 192,
  LEAD = 0.75;
const LOOK_HELD = TIERS,
  LOOK_SOLD = TIERS + 1,
  LOOK_MINE = TIERS + 2;
/** @typedef {{k: number, x: number, y: number}} Camera css pixels = world * k + (x, y) */
/** @typedef {{maxPrice: number, stepFree: boolean, heat: boolean, focus: number, focusSection: number, hover: number}} Options */

export class SeatView {
  #frame = 0;
  #rest = 0;
  #later = 0;
  #valid = false;
  #cost_ms = 0;
  #k = 0;
  #ox = 0;
  #oy = 0;
  #spriteKey = "";
  #named = "";
  /** @type {HTMLCanvasElement[]} */ #sprites = [];
  /** @type {[number, number, number, number]} what of the canvas is painted: left, top, right, bottom */ #done = [
    0, 0, 0, 0
  ];
  /** @type {import("./sprites.js").Theme} */ theme = /** @type {any} */ ({});

  /** @param {HTMLCanvasElement} base @param {HTMLCanvasElement} over @param {import("./model.js").SeatModel} model */
  constructor(base, over, model) {
    this.base = base;
    this.over = over;
    this.model = model;
    this.g = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d", { alpha: false }));
    this.og = /** @type {CanvasRenderingContext2D} */ (over.getContext("2d"));
    this.w = this.h = 0;
    this.dpr = 1;
    this.paint_ms = 0;
    /** @type {Camera} */ this.camera = { k: 1, x: 0, y: 0 };
    /** @type {Options} */ this.options = {
      maxPrice: Infinity,
      stepFree: false,
      heat: false,
      focus: -1,
      focusSection: -1,
      hover: -1
    };
    this.outlines = model.sections.map(({ outline }) => {
      const path = new Path2D();
      for (let i = 0; i < outline.length; i += 2)
        if (i) path.lineTo(outline[i], outline[i + 1]);
        else path.moveTo(outline[0], outline[1]);
      path.closePath();
      return path;
    });
    this.readTheme();
  }

  /** Read the design tokens; again when the colour scheme changes. */
  readTheme() {
    const style = getComputedStyle(this.base),
      token = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.theme = {
      bg: token("--map-bg"),
      floor: token("--map-floor"),
      ink: token("--map-ink"),
      held: token("--seat-held"),
      sold: token("--seat-sold"),
      mine: token("--seat-mine"),
      tiers: Array.from({ length: TIERS }, (_, n) => token(`--tier-${n}`)),
      font: token("--font-sans") || "sans-serif"
    };
    this.#spriteKey = this.#named = "";
    this.#valid = false;
  }

  resize() {
    const box = /** @type {HTMLElement} */ (this.base.parentElement).getBoundingClientRect();
    this.dpr = Math.min(devicePixelRatio || 1, MAX_DPR);
    this.w = box.width;
    this.h = box.height;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.max(1, Math.round((box.width + 2 * BEYOND) * this.dpr));
      canvas.height = Math.max(1, Math.round((box.height + 2 * BEYOND) * this.dpr));
      canvas.style.left = canvas.style.top = `${-BEYOND}px`;
      canvas.style.width = `${canvas.width / this.dpr}px`;
      canvas.style.height = `${canvas.height / this.dpr}px`;
    }
    this.#valid = false;
    this.#k = 0;
    this.#named = "";
  }

  /** The camera that shows everything beside the legend and the buttons. @returns {Camera} */
  fit(
    pad = 16,
    bottom = this.w > 700 && !this.options.heat ? 72 : pad,
    right = this.w <= 700 && !this.options.heat ? 68 : pad
  ) {
    const [x0, y0, x1, y1] = this.#extent(),
      k = Math.min((this.w - pad - right) / (x1 - x0), (this.h - pad - bottom) / (y1 - y0));
    return {
      k,
      x: pad + (this.w - pad - right - (x1 - x0) * k) / 2 - x0 * k,
      y: pad + (this.h - pad - bottom - (y1 - y0) * k) / 2 - y0 * k
    };
  }

  #extent() {
    let [x0, y0, x1, y1] = this.model.box;
    for (const d of this.model.doc.decor) {
      x0 = Math.min(x0, d.x);
      y0 = Math.min(y0, d.y);
      x1 = Math.max(x1, d.x + d.w);
      y1 = Math.max(y1, d.y + d.h);
    }
    return [x0 - 10, y0 - 10, x1 + 10, y1 + 10];
  }

  /** The distance between two seats in css pixels. */
  get seatPx() {
    return PITCH * this.camera.k;
  }
  get showsSeats() {
    return this.seatPx >= SEATS_FROM_PX && !this.options.heat;
  }
  request() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }
  invalidate() {
    this.#valid = false;
    this.request();
  }

  draw() {
    const began = performance.now(),
      { camera, dpr } = this,
      k = camera.k * dpr;
    if (this.#valid && k === this.#k) this.#follow();
    else if (this.#k && this.#cost_ms > SLOW_PAINT_MS) this.#stretch(k);
    else this.#all();
    const { hover, focus, focusSection } = this.options;
    if (this.#named !== `${hover} ${focus} ${focusSection} ${this.#k} ${this.#ox} ${this.#oy}`) this.#names();
    this.paint_ms = performance.now() - began;
  }

  /** Paint what is seen, in the middle of the canvas; what lies beyond comes later. */
  #all() {
    const began = performance.now(),
      { base, dpr, camera } = this,
      edge = Math.round(BEYOND * dpr);
    clearTimeout(this.#rest);
    this.#k = camera.k * dpr;
    this.#ox = Math.round((camera.x + BEYOND) * dpr);
    this.#oy = Math.round((camera.y + BEYOND) * dpr);
    this.#place("");
    this.#done = [edge, edge, base.width - edge, base.height - edge];
    this.#paint(edge, edge, base.width - 2 * edge, base.height - 2 * edge);
    this.#cost_ms = performance.now() - began;
    this.#valid = true;
    clearTimeout(this.#later);
    this.#later = window.setTimeout(() => {
      if (this.#valid) this.#fill();
    }, RESTS_MS);
  }

  /** Paint what of the canvas is not painted yet: up to four strips around what is. */
  #fill() {
    const { width, height } = this.base,
      [x0, y0, x1, y1] = this.#done;
    this.#done = [0, 0, width, height];
    for (const [x, y, w, h] of [
      [0, 0, x0, height],
      [x1, 0, width - x1, height],
      [x0, 0, x1 - x0, y0],
      [x0, y1, x1 - x0, height - y1]
    ])
      if (w > 0 && h > 0) this.#paint(x, y, w, h);
  }

  /** Where the camera is from where the picture was painted, in device pixels. */
  get #far() {
    return [
      Math.round((this.camera.x + BEYOND) * this.dpr) - this.#ox,
      Math.round((this.camera.y + BEYOND) * this.dpr) - this.#oy
    ];
  }

  /** @param {string} how */
  #place(how) {
    this.base.style.transform = this.over.style.transform = how;
  }

  /** A pan: move the picture; at an edge of what is painted, shift it inside the canvas with room ahead. */
  #follow() {
    const { base, dpr } = this,
      edge = Math.round(BEYOND * dpr),
      [dx, dy] = this.#far,
      [x0, y0, x1, y1] = this.#done;
    const fits = edge - dx >= x0 && edge - dy >= y0 && base.width - edge - dx <= x1 && base.height - edge - dy <= y1;
    if (fits) {
      this.#place(dx || dy ? `translate(${dx / dpr}px, ${dy / dpr}px)` : "");
      return;
    }
    const inside = Math.abs(dx) <= edge && Math.abs(dy) <= edge;
    if (inside) this.#fill();
    else if (!this.#shift(dx, dy, edge)) {
      this.#all();
      return;
    }
    const [fx, fy] = this.#far;
    this.#place(`translate(${fx / dpr}px, ${fy / dpr}px)`);
  }

  /** @param {number} dx @param {number} dy @param {number} edge @returns {boolean} whether anything of the picture could be kept */
  #shift(dx, dy, edge) {
    const { g, base } = this,
      { width, height } = base,
      ahead = (/** @type {number} */ by) =>
        Math.abs(by) > edge / 4 ? by + Math.sign(by) * Math.round(edge * LEAD) : by;
    const sx = ahead(dx),
      sy = ahead(dy),
      [x0, y0, x1, y1] = this.#done;
    if (Math.abs(sx) >= width || Math.abs(sy) >= height) return false;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.globalCompositeOperation = "copy";
    g.drawImage(base, sx, sy);
    g.globalCompositeOperation = "source-over";
    this.#ox += sx;
    this.#oy += sy;
    this.#done = [Math.max(0, x0 + sx), Math.max(0, y0 + sy), Math.min(width, x1 + sx), Math.min(height, y1 + sy)];
    this.#fill();
    return true;
  }

  /** A zoom that would take too long to paint each time: stretch the picture, paint when it rests. @param {number} k */
  #stretch(k) {
    const { camera, dpr } = this,
      q = k / this.#k;
    this.#place(
      `translate(${camera.x + BEYOND - (this.#ox / dpr) * q}px, ${camera.y + BEYOND - (this.#oy / dpr) * q}px) scale(${q})`
    );
    clearTimeout(this.#rest);
    clearTimeout(this.#later);
    this.#rest = window.setTimeout(() => {
      this.#all();
      this.#names();
    }, RESTS_MS);
  }

  /** @param {number} z diameter in device pixels */
  #pictures(z) {
    const key = `${z} ${this.theme.bg}`;
    if (key !== this.#spriteKey) {
      this.#spriteKey = key;
      this.#sprites = sprites(z, this.theme);
    }
    return this.#sprites;
  }

  /** @param {number} i */
  #look(i) {
    const { model, options } = this,
      state = model.state[i];
    if (model.mine.has(i)) return LOOK_MINE;
    if (state === HELD) return LOOK_HELD;
    return state === FREE && model.fits(i, options.maxPrice, options.stepFree) ? model.tier[i] % TIERS : LOOK_SOLD;
  }

  /** Paint one rectangle (device pixels) of the base. @param {number} rx @param {number} ry @param {number} rw @param {number} rh */
  #paint(rx, ry, rw, rh) {
    const { g, model, theme, dpr } = this,
      k = this.#k,
      ox = this.#ox,
      oy = this.#oy;
    g.save();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.beginPath();
    g.rect(rx, ry, rw, rh);
    g.clip();
    g.fillStyle = theme.bg;
    g.fillRect(rx, ry, rw, rh);
    g.setTransform(k, 0, 0, k, ox, oy);
    this.#decor(g);
    const x0 = (rx - ox) / k - 6,
      y0 = (ry - oy) / k - 6,
      x1 = (rx + rw - ox) / k + 6,
      y1 = (ry + rh - oy) / k + 6;
    const seats = (PITCH * k) / dpr >= SEATS_FROM_PX && !this.options.heat,
      shown = [];
    for (let i = 0; i < model.sections.length; i++) {
      const b = model.sections[i].box;
      if (b[2] > x0 - 8 && b[0] < x1 + 8 && b[3] > y0 - 8 && b[1] < y1 + 8) shown.push(i);
    }
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
      if (d.t === "ellipse") g.ellipse(d.x + d.w / 2, d.y + d.h / 2, d.w / 2, d.h / 2, 0, 0, 7);
      else g.roundRect(d.x, d.y, d.w, d.h, Math.min(d.w, d.h) * 0.12);
      g.fill();
      if (!d.label) continue;
      const tall = d.h > d.w,
        size = Math.min(Math.min(d.w, d.h) * 0.42, (Math.max(d.w, d.h) * 1.2) / d.label.length);
      g.save();
      g.translate(d.x + d.w / 2, d.y + d.h / 2);
      if (tall) g.rotate(-Math.PI / 2);
      g.fillStyle = d.t === "ellipse" ? theme.ink : theme.bg;
      g.font = `700 ${size}px ${theme.font}`;
      g.textAlign = "center";
      g.textBaseline = "middle";
      g.fillText(d.label, 0, size * 0.06);
      g.restore();
    }
  }

  /** @param {number} i @param {boolean} seats */
  #sectionShape(i, seats) {
    const { g, theme, options } = this,
      one = this.model.sections[i],
      share = one.free / Math.max(1, one.n);
    g.fillStyle = theme.floor;
    g.fill(this.outlines[i]);
    if (options.heat) {
      g.globalAlpha = 0.1 + 0.9 * (1 - share);
      g.fillStyle = theme.tiers[1];
      g.fill(this.outlines[i]);
    } else if ((!seats || one.area) && one.free && one.low <= options.maxPrice) {
      g.globalAlpha = 0.25 + 0.7 * Math.sqrt(share);
      g.fillStyle = theme.tiers[one.tier % TIERS];
      g.fill(this.outlines[i]);
    }
    g.globalAlpha = 1;
  }

  /** @param {number[]} shown @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  #seats(shown, x0, y0, x1, y1) {
    const { g, model } = this,
      k = this.#k,
      z = Math.max(3, Math.round(7.4 * k)),
      pictures = this.#pictures(z),
      half = z / 2 + 1;
    g.setTransform(1, 0, 0, 1, 0, 0);
    for (const s of shown) {
      const one = model.sections[s];
      if (one.area) continue;
      for (let i = one.base; i < one.base + one.n; i++) {
        const x = model.x[i],
          y = model.y[i];
        if (x > x0 && y > y0 && x < x1 && y < y1)
          g.drawImage(
            pictures[this.#look(i)],
            Math.floor(x * k + this.#ox - half),
            Math.floor(y * k + this.#oy - half)
          );
      }
    }
  }

  /** Repaint seats whose state changed; the overview as a whole (cheap). @param {number[]} changed */
  touch(changed) {
    if (!changed.length) return;
    if (!this.#valid || !this.showsSeats || this.camera.k * this.dpr !== this.#k) {
      this.invalidate();
      return;
    }
    const { g, model, base, theme } = this,
      k = this.#k,
      z = Math.max(3, Math.round(7.4 * k)),
      pictures = this.#pictures(z),
      half = z / 2 + 1;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = theme.floor;
    for (const i of changed) {
      const x = Math.floor(model.x[i] * k + this.#ox - half),
        y = Math.floor(model.y[i] * k + this.#oy - half);
      if (x < -z - 2 || y < -z - 2 || x > base.width || y > base.height || model.sections[model.section[i]].area)
        continue;
      g.fillRect(x, y, z + 2, z + 2);
      g.drawImage(pictures[this.#look(i)], x, y);
    }
    this.#names();
  }

  #names() {
    const { og: g, dpr, model, options, theme, over } = this,
      k = this.#k / dpr,
      ox = this.#ox,
      oy = this.#oy;
    this.#named = `${options.hover} ${options.focus} ${options.focusSection} ${this.#k} ${ox} ${oy}`;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, over.width, over.height);
    g.setTransform(this.#k, 0, 0, this.#k, ox, oy);
    g.textAlign = "center";
    g.textBaseline = "middle";
    const x0 = -ox / this.#k,
      y0 = -oy / this.#k,
      x1 = (over.width - ox) / this.#k,
      y1 = (over.height - oy) / this.#k,
      seats = PITCH * k >= SEATS_FROM_PX && !options.heat;
    const shown = model.sections.filter(({ box: b }) => b[2] > x0 && b[0] < x1 && b[3] > y0 && b[1] < y1);
    if (!seats) this.#sectionNames(g, shown);
    else if (PITCH * k < 14) this.#sectionNames(g, shown, 16 / k);
    else if (PITCH * k >= 20) this.#numbers(g, shown, x0, y0, x1, y1);
    if (options.focusSection >= 0 && (!seats || options.focus < 0 || model.sections[options.focusSection].area))
      this.#ring(g, this.outlines[options.focusSection]);
    if (seats)
      for (const i of [options.hover, options.focus])
        if (i >= 0) {
          const ring = new Path2D();
          ring.arc(model.x[i], model.y[i], 5.6, 0, 7);
          this.#ring(g, ring);
        }
    g.fillStyle = theme.ink;
  }

  /** @param {CanvasRenderingContext2D} g @param {Path2D} path */
  #ring(g, path) {
    for (const [width, colour] of /** @type {[number, string][]} */ ([
      [5, this.theme.bg],
      [2.5, this.theme.ink]
    ])) {
      g.lineWidth = (width * this.dpr) / this.#k;
      g.strokeStyle = colour;
      g.stroke(path);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {import("./model.js").Section[]} shown @param {number} [halo] size of names over seats */
  #sectionNames(g, shown, halo = 0) {
    const { theme, options } = this,
      k = this.#k / this.dpr;
    for (const one of shown) {
      const room =
        one.area || one.outline.length === 8
          ? Math.min((one.box[2] - one.box[0]) / Math.max(2, one.id.length * 0.62), one.box[3] - one.box[1])
          : 62;
      const size = halo || Math.min(Math.max(30, 11 / k), room);
      if (size * k < 7.5) continue;
      g.font = `${halo ? 700 : 650} ${size}px ${theme.font}`;
      if (halo) {
        g.lineWidth = 5 / k;
        g.strokeStyle = theme.bg;
        g.strokeText(one.id, one.cx, one.cy);
      }
      const share = one.free / Math.max(1, one.n),
        solid = options.heat ? share < 0.35 : share > 0.36 && one.low <= options.maxPrice;
      g.fillStyle = halo || !solid ? theme.ink : theme.bg;
      g.fillText(one.id, one.cx, one.cy);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {import("./model.js").Section[]} shown @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  #numbers(g, shown, x0, y0, x1, y1) {
    const { model, theme } = this;
    g.font = `600 3.2px ${theme.font}`;
    g.fillStyle = theme.bg;
    for (const one of shown)
      for (let r = 0; !one.area && r < one.rows.length; r++) {
        const [from, to] = model.rowEnds(one, r),
          odd = model.odd.get(from);
        for (let i = from; i < to; i++) {
          const x = model.x[i],
            y = model.y[i];
          if (x < x0 || x > x1 || y < y0 || y > y1 || model.state[i] !== FREE || model.mine.has(i)) continue;
          g.fillText(
            (model.flags[i] & STEP_FREE ? "♿" : "") || (odd?.[i - from] ?? String(i - from + 1)),
            x,
            y + 0.15
          );
        }
      }
  }
}
