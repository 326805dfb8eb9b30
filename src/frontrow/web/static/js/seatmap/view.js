// @ts-check
/** Draws the map: sections, seats once they are large enough to tell apart, names; on a second canvas the rings around
 * what is pointed at.
 *
 * Every frame of a pan, a zoom or a flight is painted anew at the size it is shown in: nothing is stretched, and no part
 * is blank while another is painted. Seats are pixels that are copied (sprites.js), so a frame costs a few milliseconds
 * however many there are. While the map is only pushed, the seats painted before are moved along, with some around the
 * edge to spare. Once the camera rests, seats get their numbers and sections the best spot for their name. */
import { FREE, HELD, STEP_FREE } from "./model.js";
import { Labels, NUMBERS_FROM_PX, Prints, ROWS_FROM_PX } from "./labels.js";
import { nearSections } from "./sight.js";
import { clearSquare, copySprite, markSeat, Sprites } from "./sprites.js";

export const PITCH = 9;
const SEATS_FROM_PX = 5,
  TIERS = 6,
  RESTS_MS = 90,
  MAX_DPR = 2,
  MAX_PIXELS = 3_000_000,
  MARGIN_PX = 64,
  NAME_PX = 13,
  SMALLEST_NAME_PX = 8,
  SEEN = 0.8, // so much of the view must show a part of a section
  PAD = 16;
const LOOK_HELD = TIERS,
  LOOK_SOLD = TIERS + 1,
  LOOK_MINE = TIERS + 2;
/** @typedef {{k: number, x: number, y: number}} Camera css pixels = world * k + (x, y) */
/** @typedef {{k: number, x: number, y: number, h: number, margin: number, numbers: boolean}} Layer the camera and the height at which the seats were painted, and how far beyond the edges */
/** @typedef {{focus: number, focusSection: number, hover: number, hoverSection: number, proposed: number[], alone: number[]}} Options what is marked; -1 for nothing */
/** @typedef {{top: number, right: number, bottom: number, left: number}} Inset css pixels that something else covers */

export class SeatView {
  #frame = 0;
  #rest = 0;
  #painted = "";
  #marked = "";
  #ringed = false;
  #numbersAt = 0;
  /** @type {number[]} seats to paint again */ #changed = [];
  /** @type {Layer | null} the seats as painted last; null when they must be painted anew */ #layer = null;
  /** @type {ImageData} */ #image = new ImageData(1, 1);
  /** @type {Uint32Array} */ #pixels = new Uint32Array(1);
  /** @type {Sprites} */ #sprites = /** @type {any} */ (null);
  /** @type {import("./sprites.js").Theme} */ theme = /** @type {any} */ ({});

  /** @param {HTMLCanvasElement} base @param {HTMLCanvasElement} over @param {import("./model.js").SeatModel} model */
  constructor(base, over, model) {
    this.base = base;
    this.over = over;
    this.dots = document.createElement("canvas");
    this.model = model;
    this.labels = new Labels(model);
    this.g = /** @type {CanvasRenderingContext2D} */ (this.base.getContext("2d", { alpha: false }));
    this.dg = /** @type {CanvasRenderingContext2D} */ (this.dots.getContext("2d", { willReadFrequently: true }));
    this.og = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    this.w = this.h = 0;
    this.dpr = 1;
    this.margin = 0; // of the picture of the seats, in its pixels
    this.paint_ms = 0;
    this.prints = new Prints();
    /** @type {Camera} */ this.camera = { k: 1, x: 0, y: 0 };
    /** @type {Options} */ this.options = {
      ...{ focus: -1, focusSection: -1, hover: -1, hoverSection: -1 },
      ...{ proposed: [], alone: [] }
    };
    /** @type {Inset} */ this.inset = { top: 0, right: 0, bottom: 0, left: 0 };
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
      alone: token("--bad"),
      tiers: Array.from({ length: TIERS }, (_, n) => token(`--tier-${n}`)),
      font: token("--font-sans") || "sans-serif"
    };
    this.#sprites = new Sprites(this.theme);
    this.#layer = null;
    this.#painted = "";
  }

  /** Take the size of the element. A canvas that is a bit too tall is kept: a sheet that grows must cost nothing. */
  resize() {
    const box = /** @type {HTMLElement} */ (this.base.parentElement).getBoundingClientRect();
    this.w = box.width;
    this.h = box.height;
    this.#painted = "";
    const dpr = Math.min(devicePixelRatio || 1, MAX_DPR, Math.sqrt(MAX_PIXELS / Math.max(1, box.width * box.height))),
      width = Math.max(1, Math.round(box.width * dpr)),
      height = Math.max(1, Math.round(box.height * dpr)),
      { base } = this;
    if (dpr === this.dpr && base.width === width && base.height >= height && base.height < height * 2) return;
    this.dpr = dpr;
    for (const canvas of [this.base, this.over]) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.width = `${canvas.width / this.dpr}px`;
      canvas.style.height = `${canvas.height / this.dpr}px`;
    }
    this.margin = Math.round(MARGIN_PX * this.dpr);
    this.dots.width = this.base.width + 2 * this.margin;
    this.dots.height = this.base.height + 2 * this.margin;
    this.#image = new ImageData(this.dots.width, this.dots.height);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#layer = null;
  }

  /** The camera that shows everything beside what covers the map. @returns {Camera} */
  fit() {
    const [x0, y0, x1, y1] = this.#extent(),
      left = PAD + this.inset.left,
      top = PAD + this.inset.top,
      w = Math.max(40, this.w - left - PAD - this.inset.right),
      h = Math.max(40, this.h - top - PAD - this.inset.bottom),
      k = Math.min(w / (x1 - x0), h / (y1 - y0));
    return { k, x: left + (w - (x1 - x0) * k) / 2 - x0 * k, y: top + (h - (y1 - y0) * k) / 2 - y0 * k };
  }

  /** The nearest camera that keeps the venue in sight: all of it, or a section near the middle. @param {Camera} camera @returns {Camera} */
  keepInSight(camera) {
    const fit = this.fit(),
      k = Math.max(fit.k, camera.k),
      [x0, y0, x1, y1] = this.#extent();
    if (k <= fit.k * 1.001) return fit;
    const [mx, my] = this.middle,
      seen = SEEN / 2 / k,
      within = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to) =>
        Math.min(to, Math.max(from, at));
    const [x, y] = nearSections(
      this.model.sections,
      [within((mx - camera.x) / k, x0, x1), within((my - camera.y) / k, y0, y1)],
      [
        Math.max(40, this.w - this.inset.left - this.inset.right) * seen,
        Math.max(40, this.h - this.inset.top - this.inset.bottom) * seen
      ]
    );
    return { k, x: mx - x * k, y: my - y * k };
  }

  /** The middle of what is not covered, in css pixels. */
  get middle() {
    const { top, right, bottom, left } = this.inset;
    return [(left + this.w - right) / 2, (top + this.h - bottom) / 2];
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
    return this.seatPx >= SEATS_FROM_PX;
  }
  request() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }
  invalidate() {
    this.#layer = null;
    this.#painted = "";
    this.request();
  }

  draw() {
    const began = performance.now(),
      { camera, options } = this,
      at = `${camera.k} ${camera.x} ${camera.y}`,
      marks = `${options.hover} ${options.hoverSection} ${options.focus} ${options.focusSection} ${options.proposed} | ${options.alone}`;
    if (at !== this.#painted) {
      this.#painted = at;
      this.#paint(this.#changed);
      this.#marked = "";
      clearTimeout(this.#rest);
      this.#rest = window.setTimeout(() => this.#settle(), RESTS_MS);
    } else if (this.#changed.length) this.#paint(this.#changed);
    this.#changed = [];
    if (marks !== this.#marked) this.#paintRings();
    this.#marked = marks;
    this.paint_ms = performance.now() - began;
  }

  /** Paint the picture; seats that are painted already are kept as far as possible, `changed` ones painted again. @param {number[]} changed */
  #paint(changed) {
    const { g, margin } = this,
      shown = this.#shown(),
      seats = this.showsSeats;
    this.#paintSections(shown);
    if (seats) {
      if (this.#isKept()) this.#repaintSeats(changed);
      else this.#paintSeats();
      const [dx, dy] = this.#pushed();
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.drawImage(this.dots, dx - margin, dy - margin);
    }
    g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    g.textAlign = "center";
    g.textBaseline = "middle";
    this.#namesInside(g, seats ? shown.filter((s) => this.model.sections[s].area) : shown);
    this.prints.clear();
    if (!seats) return;
    this.#namesBeside(g, shown);
    if (this.seatPx >= ROWS_FROM_PX) this.#rowNames(g, shown);
  }

  /** The camera rests: number the seats, and choose where the sections' names go. */
  #settle() {
    const { k, x, y } = this.camera,
      { top, right, bottom, left } = this.inset,
      shown = this.#shown();
    if (this.showsSeats)
      this.labels.choose(
        shown,
        NAME_PX / k,
        [(left - x) / k, (top - y) / k, (this.w - right - x) / k, (this.h - bottom - y) / k],
        this.seatPx >= ROWS_FROM_PX
      );
    this.#numbersAt = k;
    if (this.showsSeats) {
      this.#paint([]);
      this.#paintRings();
    }
  }

  /** How far the map was pushed since the seats were painted, in their pixels. */
  #pushed() {
    const { camera, dpr } = this,
      layer = this.#layer ?? camera;
    return [Math.round((camera.x - layer.x) * dpr), Math.round((camera.y - layer.y) * dpr)];
  }

  /** Whether the seats that are painted fill the map as it is now. */
  #isKept() {
    const layer = this.#layer;
    if (!layer || layer.k !== this.camera.k || layer.numbers !== this.#numbers || layer.h < this.h) return false;
    return this.#pushed().every((way) => Math.abs(way) <= layer.margin);
  }
  get #numbers() {
    return this.seatPx >= NUMBERS_FROM_PX && this.#numbersAt === this.camera.k;
  }

  /** The sections that are in sight, or at most so far from it. @param {number} [beside] css pixels */
  #shown(beside = 0) {
    const { k, x, y } = this.camera,
      far = 14 + beside / k,
      [x0, y0, x1, y1] = [-x / k - far, -y / k - far, (this.w - x) / k + far, (this.h - y) / k + far],
      shown = [];
    for (let s = 0; s < this.model.sections.length; s++) {
      const b = this.model.sections[s].box;
      if (b[2] > x0 && b[0] < x1 && b[3] > y0 && b[1] < y1) shown.push(s);
    }
    return shown;
  }

  /** @param {CanvasRenderingContext2D} g */
  #aim(g) {
    const { camera, dpr } = this;
    g.setTransform(camera.k * dpr, 0, 0, camera.k * dpr, camera.x * dpr, camera.y * dpr);
  }

  /** @param {number[]} shown */
  #paintSections(shown) {
    const { g, base, theme } = this,
      seats = this.showsSeats;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = theme.bg;
    g.fillRect(0, 0, base.width, base.height);
    this.#aim(g);
    this.#paintDecor(g);
    g.fillStyle = theme.floor;
    for (const s of shown) g.fill(this.outlines[s]);
    for (const s of shown) {
      const one = this.model.sections[s];
      if ((seats && !one.area) || !one.fit) continue;
      g.globalAlpha = 0.25 + 0.7 * Math.sqrt(one.fit / Math.max(1, one.n));
      g.fillStyle = theme.tiers[mostOf(one.fits) % TIERS];
      g.fill(this.outlines[s]);
    }
    g.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} g */
  #paintDecor(g) {
    const { theme, camera, dpr } = this,
      { k } = camera;
    for (const d of this.model.doc.decor) {
      g.fillStyle = d.t === "ellipse" ? theme.floor : theme.ink;
      g.beginPath();
      if (d.t === "ellipse") g.ellipse(d.x + d.w / 2, d.y + d.h / 2, d.w / 2, d.h / 2, 0, 0, 7);
      else if (d.t !== "text") g.roundRect(d.x, d.y, d.w, d.h, Math.min(d.w, d.h) * 0.12);
      g.fill();
      if (!d.label) continue;
      const text = d.t === "text",
        tall = !text && d.h > d.w,
        size = text
          ? d.h / 1.25 || 12
          : Math.min(Math.min(d.w, d.h) * 0.42, (Math.max(d.w, d.h) * 1.2) / d.label.length);
      g.save(); // in the size it is shown in: letters of a small font that is stretched stand apart
      g.setTransform(dpr, 0, 0, dpr, (camera.x + (d.x + d.w / 2) * k) * dpr, (camera.y + (d.y + d.h / 2) * k) * dpr);
      if (tall) g.rotate(-Math.PI / 2);
      g.fillStyle = d.t === "ellipse" || text ? theme.ink : theme.bg;
      g.font = `700 ${size * k}px ${theme.font}`;
      g.textRendering = "geometricPrecision";
      g.textAlign = "center";
      g.textBaseline = "middle";
      g.fillText(d.label, 0, size * k * 0.06);
      g.restore();
    }
  }

  /** @param {number} i */
  #look(i) {
    const { model } = this,
      state = model.state[i];
    if (model.mine.size && model.mine.has(i)) return LOOK_MINE;
    if (state === HELD) return LOOK_HELD;
    return state === FREE && model.matches(i) ? model.tier[i] % TIERS : LOOK_SOLD;
  }

  /** The picture of a seat: with its number if it is free, large enough and the camera is not zooming.
   * @param {number} i @param {number} z @param {import("./sprites.js").Sprite[]} plain @param {boolean} numbers */
  #picture(i, z, plain, numbers) {
    const look = this.#look(i);
    return numbers && look < TIERS ? this.#sprites.numbered(z, look, this.#text(i)) : plain[look];
  }
  /** @param {number} i */
  #text(i) {
    return this.model.flags[i] & STEP_FREE ? "♿" : this.model.numberOf(i);
  }

  /** How the seats of a layer are drawn. @param {Layer} layer */
  #drawing(layer) {
    const { dpr, margin } = this,
      k = layer.k * dpr,
      z = Math.max(3, Math.round(7.4 * k));
    return {
      k,
      z,
      ox: layer.x * dpr + margin - z / 2 - 1,
      oy: layer.y * dpr + margin - z / 2 - 1,
      plain: this.#sprites.plain(z),
      numbers: layer.numbers
    };
  }

  /** Paint the seats in sight; those around too unless the map is being zoomed, when every frame has another size. */
  #paintSeats() {
    const { model, dots, camera, margin: edge } = this,
      { width, height } = dots,
      pixels = this.#pixels,
      margin = this.#layer?.k === camera.k ? edge : 0,
      layer = { ...camera, h: this.h, margin, numbers: this.#numbers },
      { k, z, ox, oy, plain, numbers } = this.#drawing(layer),
      out = edge - margin, // pixels at each edge that are not painted
      far = out - z - 2;
    this.#layer = layer;
    pixels.fill(0);
    for (const s of this.#shown(margin / this.dpr)) {
      const one = model.sections[s];
      if (one.area) continue;
      for (let i = one.base; i < one.base + one.n; i++) {
        const x = Math.floor(model.x[i] * k + ox),
          y = Math.floor(model.y[i] * k + oy);
        if (x > far && y > far && x < width - out && y < height - out)
          copySprite(pixels, width, height, this.#picture(i, z, plain, numbers), x, y);
      }
    }
    this.dg.putImageData(this.#image, 0, 0, out, out, width - 2 * out, height - 2 * out);
  }

  /** @param {number[]} changed */
  #repaintSeats(changed) {
    if (!this.#layer || !changed.length) return;
    const { model, dots } = this,
      { width, height } = dots,
      { k, z, ox, oy, plain, numbers } = this.#drawing(this.#layer);
    let [left, top, right, bottom] = [width, height, 0, 0];
    for (const i of changed) {
      const x = Math.floor(model.x[i] * k + ox),
        y = Math.floor(model.y[i] * k + oy);
      if (x <= -z - 2 || y <= -z - 2 || x >= width || y >= height || model.sections[model.section[i]].area) continue;
      clearSquare(this.#pixels, width, height, z, x + 1, y + 1);
      copySprite(this.#pixels, width, height, this.#picture(i, z, plain, numbers), x, y);
      left = Math.min(left, x);
      top = Math.min(top, y);
      right = Math.max(right, x + z + 2);
      bottom = Math.max(bottom, y + z + 2);
    }
    if (right > left) this.dg.putImageData(this.#image, 0, 0, left, top, right - left, bottom - top);
  }

  /** Seats whose state changed are painted again with the next frame. @param {number[]} changed */
  touch(changed) {
    if (!changed.length) return;
    for (const i of changed) this.#changed.push(i);
    this.request();
  }

  /** Rings around what the mouse and the keyboard are at. */
  #paintRings() {
    const { og: g, model, options, over } = this,
      seats = this.showsSeats,
      paths = [],
      sections = [];
    for (const s of new Set([options.hoverSection, options.focusSection]))
      if (s >= 0 && (!seats || (options.focus < 0 && s === options.focusSection) || model.sections[s].area))
        sections.push(this.outlines[s]);
    for (const i of new Set([options.hover, options.focus]))
      if (seats && i >= 0) {
        const ring = new Path2D();
        ring.arc(model.x[i], model.y[i], 5.6, 0, 7);
        paths.push(ring);
      }
    const marked = seats ? [...options.proposed, ...options.alone] : [];
    if (!paths.length && !sections.length && !marked.length && !this.#ringed) return;
    this.#ringed = paths.length + sections.length + marked.length > 0;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, over.width, over.height);
    this.#aim(g);
    for (const path of sections) this.#ring(g, path);
    g.setTransform(this.dpr, 0, 0, this.dpr, 0, 0); // the names of rows stand at the edge of a section: they stay readable
    for (const [x0, y0, x1, y1] of this.prints.boxes) g.clearRect(x0, y0, x1 - x0, y1 - y0);
    this.#aim(g);
    for (const i of marked)
      markSeat(g, model.x[i], model.y[i], options.proposed.includes(i), this.theme, this.camera.k);
    for (const path of paths) this.#ring(g, path);
  }

  /** @param {CanvasRenderingContext2D} g @param {Path2D} path */
  #ring(g, path) {
    for (const [width, colour] of /** @type {[number, string][]} */ ([
      [6, this.theme.bg],
      [3, this.theme.ink]
    ])) {
      g.lineWidth = width / this.camera.k;
      g.strokeStyle = colour;
      g.stroke(path);
    }
  }

  /** The names of sections that are shown as a whole. @param {CanvasRenderingContext2D} g @param {number[]} shown */
  #namesInside(g, shown) {
    const { theme, camera } = this,
      { k } = camera;
    for (const s of shown) {
      const one = this.model.sections[s],
        [ofName, ofId] = this.labels.nameSize(s).map((most) => Math.floor(Math.min(most * k, Math.max(30 * k, 11)))),
        fits = ofName >= SMALLEST_NAME_PX, // else its id, where that is short enough
        size = fits ? ofName : ofId;
      if (size < SMALLEST_NAME_PX) continue;
      g.font = `650 ${size}px ${theme.font}`;
      g.fillStyle = one.fit / Math.max(1, one.n) > 0.36 ? theme.bg : theme.ink;
      g.fillText(fits ? one.name : one.id, one.cx * k + camera.x, one.cy * k + camera.y);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {number[]} shown */
  #namesBeside(g, shown) {
    const { theme, camera, labels } = this,
      { k } = camera;
    g.font = `700 ${NAME_PX}px ${theme.font}`;
    g.fillStyle = theme.ink;
    for (const s of shown) {
      const spot = labels.spots[s];
      if (spot) this.prints.print(g, spot.text, spot.x * k + camera.x, spot.y * k + camera.y, NAME_PX);
    }
  }

  /** @param {CanvasRenderingContext2D} g @param {number[]} shown */
  #rowNames(g, shown) {
    const { theme, camera, labels } = this,
      { k } = camera;
    const size = Math.floor(Math.min(12, this.seatPx * 0.72));
    g.font = `600 ${size}px ${theme.font}`;
    g.fillStyle = theme.ink;
    for (const s of shown)
      for (const label of labels.rows(s)) {
        const x = label.x * k + camera.x,
          y = label.y * k + camera.y;
        if (x > 0 && y > 0 && x < this.w && y < this.h) this.prints.print(g, label.text, x, y, size, this.seatPx * 1.4);
      }
  }
}

/** The position of the largest count. @param {Uint32Array} counts */
function mostOf(counts) {
  let best = 0;
  for (let n = 1; n < counts.length; n++) if (counts[n] > counts[best]) best = n;
  return best;
}
