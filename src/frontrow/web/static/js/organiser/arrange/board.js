// @ts-check
/** Draws the plan that is being arranged on two canvases: what rests below, what is chosen above. While something is
 * dragged only the upper one is painted, so thousands of seats below cost nothing. */
import { boundsOf, directionOf } from "./geometry.js";
import { chosenPoints } from "./draft.js";

/** @typedef {import("./draft.js").Draft} Draft */
/** @typedef {import("./draft.js").Chosen} Chosen */
/** @typedef {{k: number, x: number, y: number}} Camera css pixels = plan units * k + (x, y) */
/** @typedef {{x: number, y: number}} Spot css pixels */

const SEAT = 3.7,
  TIERS = 6,
  PAD = 36,
  MAX_ZOOM = 8,
  MAX_DPR = 2,
  HANDLE_PX = 9,
  HANDLE_AWAY_PX = 30,
  EDGE_PX = 16,
  NAMES_FROM = 0.9,
  MAX_SIZES = 8;

export class Board {
  /** @type {Camera} */ camera = { k: 1, x: 0, y: 0 };
  w = 0;
  h = 0;
  #dpr = 1;
  #fitted = 1;
  #frame = 0;
  #below = true;
  /** @type {Record<string, string>} */ #theme = {};
  /** @type {string[]} */ #tiers = [];
  /** Pictures of a seat by size: one per tier and one for a wrong seat. @type {Map<string, HTMLCanvasElement[]>} */ #sprites =
    new Map();
  /** @type {Draft} */ draft = { sections: [] };
  /** @type {Chosen} */ chosen = new Set();
  /** @type {ReadonlySet<string>} keys of what is wrong */ wrong = new Set();
  /** How far the chosen ones are dragged now. @type {[number, number]} */ shift = [0, 0];
  /** @type {[Spot, Spot] | null} */ frameOf = null;
  handles = true;

  /** @param {HTMLElement} box @param {import("../../seatmap/model.js").Decor[]} decor */
  constructor(box, decor) {
    this.box = box;
    this.decor = decor;
    this.base = document.createElement("canvas");
    this.over = document.createElement("canvas");
    for (const canvas of [this.base, this.over]) canvas.setAttribute("aria-hidden", "true");
    box.replaceChildren(this.base, this.over);
    this.g = /** @type {CanvasRenderingContext2D} */ (this.base.getContext("2d"));
    this.og = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    this.readTheme();
  }

  readTheme() {
    const style = getComputedStyle(this.box),
      token = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    for (const name of ["map-bg", "map-floor", "map-ink", "brand", "bad", "font-sans"])
      this.#theme[name] = token(`--${name}`);
    this.#tiers = Array.from({ length: TIERS }, (_, n) => token(`--tier-${n}`));
    this.#sprites.clear();
    this.repaint();
  }

  resize() {
    const box = this.box.getBoundingClientRect();
    this.w = box.width;
    this.h = box.height;
    this.#dpr = Math.min(devicePixelRatio || 1, MAX_DPR);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.max(1, Math.round(box.width * this.#dpr));
      canvas.height = Math.max(1, Math.round(box.height * this.#dpr));
      canvas.style.width = `${box.width}px`;
      canvas.style.height = `${box.height}px`;
    }
    this.repaint();
  }

  /** The box around everything. @returns {import("./geometry.js").Box} */
  get extent() {
    const lists = this.draft.sections.flatMap((one) =>
      one.box
        ? [[one.box[0], one.box[1], one.box[0] + one.box[2], one.box[1] + one.box[3]]]
        : one.rows.map((row) => row.points)
    );
    return boundsOf([...lists, ...this.decor.map((d) => [d.x, d.y, d.x + d.w, d.y + d.h])]);
  }
  /** The camera that shows everything. @returns {Camera} */
  get whole() {
    const [x0, y0, x1, y1] = this.extent,
      k = Math.min((this.w - 2 * PAD) / Math.max(1, x1 - x0), (this.h - 2 * PAD) / Math.max(1, y1 - y0), 3);
    return { k, x: this.w / 2 - ((x0 + x1) / 2) * k, y: this.h / 2 - ((y0 + y1) / 2) * k };
  }
  fit() {
    this.camera = this.whole;
    this.#fitted = this.camera.k;
    this.repaint();
  }
  /** Whether nobody zoomed in, so that there is nothing to scroll but the page. */
  get showsWhole() {
    return this.camera.k <= this.#fitted * 1.01;
  }
  /** @param {number} factor @param {Spot} [at] */
  zoom(factor, at = { x: this.w / 2, y: this.h / 2 }) {
    const { camera } = this,
      k = Math.min(MAX_ZOOM, Math.max(this.whole.k * 0.7, camera.k * factor)),
      q = k / camera.k;
    this.camera = { k, x: at.x - (at.x - camera.x) * q, y: at.y - (at.y - camera.y) * q };
    this.#keepInSight();
    this.repaint();
  }
  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.camera = { ...this.camera, x: this.camera.x + dx, y: this.camera.y + dy };
    this.#keepInSight();
    this.repaint();
  }
  /** The middle of the board always shows a part of the plan. */
  #keepInSight() {
    const [x0, y0, x1, y1] = this.extent,
      { camera } = this;
    camera.x = Math.max(this.w / 2 - x1 * camera.k, Math.min(this.w / 2 - x0 * camera.k, camera.x));
    camera.y = Math.max(this.h / 2 - y1 * camera.k, Math.min(this.h / 2 - y0 * camera.k, camera.y));
  }
  /** Show a spot of the plan if it is out of sight. @param {number} x @param {number} y */
  reveal(x, y) {
    const at = this.spot(x, y),
      into = (/** @type {number} */ v, /** @type {number} */ size) =>
        v < PAD ? PAD - v : v > size - PAD ? size - PAD - v : 0;
    const [dx, dy] = [into(at.x, this.w), into(at.y, this.h)];
    if (dx || dy) this.pan(dx, dy);
  }
  /** @param {number} x @param {number} y @returns {Spot} */
  spot(x, y) {
    return { x: x * this.camera.k + this.camera.x, y: y * this.camera.k + this.camera.y };
  }
  /** @param {Spot} at @returns {[number, number]} */
  place(at) {
    return [(at.x - this.camera.x) / this.camera.k, (at.y - this.camera.y) / this.camera.k];
  }

  /** Where the two handles are: one to turn, on the one side of what is chosen, one to bend, on the other.
   * @returns {{turn: Spot, bend: Spot, middle: [number, number], down: [number, number]} | null} */
  get grips() {
    if (!this.handles || ![...this.chosen].some((key) => key.split("/").length < 3)) return null;
    const lists = chosenPoints(this.draft, this.chosen);
    if (!lists.length) return null;
    const row = lists.find((points) => points.length > 2) ?? lists[0],
      [ux, uy] = directionOf(row),
      down = /** @type {[number, number]} */ ([-uy, ux]),
      [x0, y0, x1, y1] = boundsOf(lists),
      middle = /** @type {[number, number]} */ ([(x0 + x1) / 2, (y0 + y1) / 2]);
    let reach = 0,
      back = 0;
    for (const points of lists)
      for (let at = 0; at < points.length; at += 2) {
        const far = (points[at] - middle[0]) * down[0] + (points[at + 1] - middle[1]) * down[1];
        reach = Math.max(reach, far);
        back = Math.max(back, -far);
      }
    const at = (/** @type {number} */ far, /** @type {number} */ side) => {
      const spot = this.spot(middle[0] + down[0] * far * side, middle[1] + down[1] * far * side);
      return {
        x: Math.max(EDGE_PX, Math.min(this.w - EDGE_PX, spot.x + down[0] * HANDLE_AWAY_PX * side)),
        y: Math.max(EDGE_PX, Math.min(this.h - EDGE_PX, spot.y + down[1] * HANDLE_AWAY_PX * side))
      };
    };
    return { turn: at(back, -1), bend: at(reach, 1), middle, down };
  }

  /** Both canvases anew. */
  repaint() {
    this.#below = true;
    this.request();
  }
  /** The upper canvas anew. */
  request() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#below) this.#paintBelow();
      this.#below = false;
      this.#paintAbove();
    });
  }
  /** The chosen ones have another form now. @param {Draft} draft */
  reshape(draft) {
    this.draft = draft;
    this.request();
  }

  /** @param {CanvasRenderingContext2D} g @param {HTMLCanvasElement} canvas */
  #clear(g, canvas) {
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, canvas.width, canvas.height);
    this.#aim(g, 0, 0);
  }
  /** @param {CanvasRenderingContext2D} g @param {number} dx @param {number} dy */
  #aim(g, dx, dy) {
    const k = this.camera.k * this.#dpr;
    g.setTransform(k, 0, 0, k, this.camera.x * this.#dpr + dx * k, this.camera.y * this.#dpr + dy * k);
  }

  #paintBelow() {
    const { g } = this;
    this.#clear(g, this.base);
    this.#paintDecor(g);
    this.#paintAreas(g, false);
    this.#paintSeats(g, false);
    this.#aim(g, 0, 0);
    this.#paintNames(g);
  }

  #paintAbove() {
    const { og: g } = this;
    this.#clear(g, this.over);
    this.#aim(g, ...this.shift);
    if (this.chosen.size) {
      this.#paintAreas(g, true);
      this.#paintSeats(g, true);
    }
    g.setTransform(this.#dpr, 0, 0, this.#dpr, 0, 0);
    this.#paintHandles(g);
    this.#paintFrame(g);
  }

  /** The seats above or those below: small pictures, copied. @param {CanvasRenderingContext2D} g @param {boolean} above */
  #paintSeats(g, above) {
    const { chosen, wrong } = this,
      k = this.camera.k * this.#dpr,
      sprites = this.#seatPictures(above),
      half = sprites[0].width / 2,
      [dx, dy] = above ? this.shift : [0, 0],
      [ox, oy] = [this.camera.x * this.#dpr + dx * k - half, this.camera.y * this.#dpr + dy * k - half],
      { width, height } = this.base,
      single = [...chosen].some((key) => key.split("/").length > 2) || wrong.size > 0;
    g.setTransform(1, 0, 0, 1, 0, 0);
    for (const section of this.draft.sections) {
      const whole = chosen.has(section.key);
      if (section.box || (whole && !above)) continue;
      for (const { key, points, tiers } of section.rows) {
        const all = whole || chosen.has(key);
        if (!single && all !== above) continue;
        for (let at = 0; at < points.length; at += 2) {
          const x = Math.round(points[at] * k + ox),
            y = Math.round(points[at + 1] * k + oy);
          if (x < -2 * half || y < -2 * half || x > width || y > height) continue;
          const seat = single ? `${key}/${at / 2}` : "";
          if (single && (all || chosen.has(seat)) !== above) continue;
          g.drawImage(sprites[single && wrong.has(seat) ? TIERS : tiers[at / 2] % TIERS], x, y);
        }
      }
    }
  }
  /** The pictures of a seat at this size, above with a ring. @param {boolean} above */
  #seatPictures(above) {
    const radius = Math.max(1, SEAT * this.camera.k * this.#dpr),
      name = `${radius.toFixed(2)} ${above}`,
      found = this.#sprites.get(name);
    if (found) return found;
    const ring = above ? 1.2 * this.#dpr : 0,
      z = 2 * Math.ceil(radius * 1.4 + ring + 1),
      made = [...this.#tiers, this.#theme.bad].map((colour, tier) => {
        const canvas = document.createElement("canvas"),
          g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
          wrong = tier === TIERS;
        canvas.width = canvas.height = z;
        g.beginPath();
        g.arc(z / 2, z / 2, wrong ? radius * 1.4 : radius, 0, 7);
        g.fillStyle = colour;
        g.fill();
        g.lineWidth = wrong ? 1.2 * this.#dpr : ring;
        g.strokeStyle = this.#theme["map-ink"];
        if (g.lineWidth && (ring || wrong)) g.stroke();
        return canvas;
      });
    if (this.#sprites.size > MAX_SIZES) this.#sprites.clear();
    this.#sprites.set(name, made);
    return made;
  }

  /** @param {CanvasRenderingContext2D} g @param {boolean} above */
  #paintAreas(g, above) {
    for (const section of this.draft.sections) {
      if (!section.box || this.chosen.has(section.key) !== above) continue;
      const [x, y, w, h] = section.box;
      g.fillStyle = this.#tiers[section.tier % TIERS];
      g.globalAlpha = 0.35;
      g.fillRect(x, y, w, h);
      g.globalAlpha = 1;
      if (!above) continue;
      g.lineWidth = 2.4 / this.camera.k;
      g.strokeStyle = this.#theme["map-ink"];
      g.strokeRect(x, y, w, h);
    }
  }

  /** @param {CanvasRenderingContext2D} g */
  #paintDecor(g) {
    for (const d of this.decor) {
      g.fillStyle = this.#theme["map-floor"];
      g.beginPath();
      if (d.t === "ellipse") g.ellipse(d.x + d.w / 2, d.y + d.h / 2, d.w / 2, d.h / 2, 0, 0, 7);
      else if (d.t !== "text") g.rect(d.x, d.y, d.w, d.h);
      g.fill();
      if (d.label) this.#write(g, d.label, d.x + d.w / 2, d.y + d.h / 2, 13);
    }
  }
  /** The labels of sections beside their first row, those of rows once there is room. @param {CanvasRenderingContext2D} g */
  #paintNames(g) {
    for (const section of this.draft.sections) {
      if (section.box) {
        const [x, y, w, h] = section.box;
        this.#write(g, section.id, x + w / 2, y + h / 2, 13);
        continue;
      }
      const first = section.rows[0].points,
        half = (first.length / 4) | 0;
      this.#write(g, section.id, first[2 * half], first[2 * half + 1] - SEAT - 10 / this.camera.k, 13);
      if (this.camera.k < NAMES_FROM) continue;
      for (const row of section.rows)
        this.#write(g, row.id, row.points[0] - SEAT - 9 / this.camera.k, row.points[1], 11);
    }
  }
  /** @param {CanvasRenderingContext2D} g @param {string} text @param {number} x @param {number} y @param {number} px */
  #write(g, text, x, y, px) {
    const at = g.getTransform().transformPoint({ x, y });
    g.save(); // in the size it is shown in: letters of a small font that is stretched stand apart
    g.setTransform(this.#dpr, 0, 0, this.#dpr, at.x, at.y);
    g.font = `600 ${px}px ${this.#theme["font-sans"] || "sans-serif"}`;
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.lineWidth = 3;
    g.strokeStyle = this.#theme["map-bg"];
    g.strokeText(text, 0, 0);
    g.fillStyle = this.#theme["map-ink"];
    g.fillText(text, 0, 0);
    g.restore();
  }

  /** @param {CanvasRenderingContext2D} g */
  #paintHandles(g) {
    const { grips } = this,
      [dx, dy] = [this.shift[0] * this.camera.k, this.shift[1] * this.camera.k];
    if (!grips) return;
    for (const [spot, sign] of /** @type {[Spot, string][]} */ ([
      [grips.turn, "↻"],
      [grips.bend, "⌣"]
    ])) {
      g.beginPath();
      g.arc(spot.x + dx, spot.y + dy, HANDLE_PX + 2, 0, 7);
      g.fillStyle = this.#theme["map-bg"];
      g.fill();
      g.lineWidth = 2;
      g.strokeStyle = this.#theme.brand;
      g.stroke();
      g.fillStyle = this.#theme.brand;
      g.font = `700 14px ${this.#theme["font-sans"] || "sans-serif"}`;
      g.textAlign = "center";
      g.textBaseline = "middle";
      g.fillText(sign, spot.x + dx, spot.y + dy + 1);
    }
  }
  /** @param {CanvasRenderingContext2D} g */
  #paintFrame(g) {
    if (!this.frameOf) return;
    const [a, b] = this.frameOf;
    g.setLineDash([5, 4]);
    g.lineWidth = 1.5;
    g.strokeStyle = this.#theme.brand;
    g.strokeRect(Math.min(a.x, b.x), Math.min(a.y, b.y), Math.abs(a.x - b.x), Math.abs(a.y - b.y));
    g.setLineDash([]);
  }
}
