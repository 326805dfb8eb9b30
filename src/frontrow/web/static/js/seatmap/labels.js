// @ts-check
/** The names on the map: from which size on they are shown, where they go (a row's at its ends, a section's beside its seats
 * and never over one, in the map's units), and how those of one frame are printed without lying over each other. */

export const ROWS_FROM_PX = 12, // how large a seat must be for the names of rows
  NUMBERS_FROM_PX = 20; // and for its number
const LETTER = 0.62, // the width of a letter, of its size
  CELL = 24,
  NEAR = 6.5,
  ROW_AWAY = 8.6,
  /** @type {[number, number]} */ NARROW = [7.2, 5.6],
  /** @type {[number, number]} */ FARTHER = [9.6, 4.9],
  BESIDE = [3, 15];

/** @typedef {import("./model.js").SeatModel} SeatModel @typedef {import("./model.js").Section} Section @typedef {import("./model.js").Box} Box */
/** @typedef {{x: number, y: number, text: string, row?: number}} Label */

/** The names of one frame: where another one is printed already, a name is left out. */
export class Prints {
  /** @type {Box[]} css pixels */ boxes = [];
  clear() {
    this.boxes = [];
  }
  /** @param {CanvasRenderingContext2D} g @param {string} text @param {number} x @param {number} y @param {number} size @param {number} [most] its width at most */
  print(g, text, x, y, size, most = Infinity) {
    const w = Math.min(most, text.length * size * LETTER) / 2 + 1,
      h = size / 2;
    /** @type {Box} */
    const box = [x - w, y - h, x + w, y + h];
    if (this.boxes.some((b) => b[0] < box[2] && b[2] > box[0] && b[1] < box[3] && b[3] > box[1])) return;
    this.boxes.push(box);
    g.fillText(text, x, y, most === Infinity ? undefined : most);
  }
}

export class Labels {
  /** @type {{columns: number, lines: number, first: Uint32Array, seats: Uint32Array} | undefined} seats by cell */ #cells;
  /** @type {Label[][]} */ #rows = [];
  /** @type {Map<string, {x: number, y: number, half: number}[]>} the rows' names by cell */ #names = new Map();
  /** @type {number[][]} */ #sizes = [];
  /** @param {SeatModel} model */
  constructor(model) {
    this.model = model;
    /** @type {(Label | null | undefined)[]} the spots chosen for the sections' names, by section */
    this.spots = [];
  }

  /** Sort the seats by the cell they lie in, once. */
  #index() {
    const { model } = this,
      [left, top, right, bottom] = model.box,
      columns = Math.floor((right - left) / CELL) + 1,
      lines = Math.floor((bottom - top) / CELL) + 1,
      first = new Uint32Array(columns * lines + 1),
      seats = new Uint32Array(model.n),
      cellOf = (/** @type {number} */ i) =>
        Math.floor((model.y[i] - top) / CELL) * columns + Math.floor((model.x[i] - left) / CELL);
    for (let i = 0; i < model.n; i++) first[cellOf(i) + 1]++;
    for (let c = 0; c < columns * lines; c++) first[c + 1] += first[c];
    const next = first.slice();
    for (let i = 0; i < model.n; i++) seats[next[cellOf(i)]++] = i;
    return { columns, lines, first, seats };
  }

  /** Whether a seat lies in a rectangle. @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  #taken(x0, y0, x1, y1) {
    const { model } = this,
      { columns, lines, first, seats } = (this.#cells ??= this.#index()),
      [left, top] = model.box,
      c0 = Math.max(0, Math.floor((x0 - left) / CELL)),
      c1 = Math.min(columns - 1, Math.floor((x1 - left) / CELL)),
      l1 = Math.min(lines - 1, Math.floor((y1 - top) / CELL));
    for (let line = Math.max(0, Math.floor((y0 - top) / CELL)); line <= l1 && c0 <= c1; line++)
      for (let at = first[line * columns + c0]; at < first[line * columns + c1 + 1]; at++) {
        const i = seats[at];
        if (model.x[i] > x0 && model.x[i] < x1 && model.y[i] > y0 && model.y[i] < y1) return true;
      }
    return false;
  }

  /** The names at both ends of a section's rows, where there is room for them. @param {number} s @returns {Label[]} */
  rows(s) {
    if (!this.#rows.length) this.#placeAll();
    return this.#rows[s];
  }
  /** Every row where it begins, then at its other end: a name never lies over one that is there already. */
  #placeAll() {
    const { sections } = this.model;
    this.#rows = sections.map(() => []);
    for (const first of [true, false]) sections.forEach((one, s) => this.#placeRows(one, this.#rows[s], first));
  }
  /** @param {Section} one @param {Label[]} made @param {boolean} first where the rows begin, not where they end */
  #placeRows(one, made, first) {
    for (let r = 0; !one.area && r < one.rows.length; r++) {
      const [from, to] = this.model.rowEnds(one, r),
        last = to - 1,
        text = one.rowNames[r],
        near = Math.min(from + 1, last);
      /** @type {[number, number, number, number][]} */
      const ways = first
        ? [[from, near, ROW_AWAY, NEAR]]
        : [
            [last, Math.max(from, last - 1), ROW_AWAY, NEAR],
            [from, near, ...NARROW],
            [from, near, ...FARTHER],
            [last, Math.max(from, last - 1), ...NARROW],
            [last, Math.max(from, last - 1), ...FARTHER]
          ];
      for (const [at, way] of ways.entries()) {
        if (at && made.some((other) => other.row === r)) break; // only a row that has no name yet
        const spot = this.#beside(...way);
        if (!spot || this.#isPrinted(spot.x, spot.y, text)) continue;
        made.push({ ...spot, text, row: r });
        this.#claim(spot.x, spot.y, text);
      }
    }
  }
  /** Half the width of a row's name. @param {string} text */
  static #half(text) {
    return Math.min(6.3, 2.1 * text.length);
  }
  /** Whether a row's name would touch another one. @param {number} x @param {number} y @param {string} text */
  #isPrinted(x, y, text) {
    const [cx, cy] = [Math.floor(x / CELL), Math.floor(y / CELL)],
      half = Labels.#half(text);
    for (let dx = -1; dx <= 1; dx++)
      for (let dy = -1; dy <= 1; dy++)
        for (const other of this.#names.get(`${cx + dx} ${cy + dy}`) ?? [])
          if (Math.abs(other.x - x) < half + other.half + 1 && Math.abs(other.y - y) < 7) return true;
    return false;
  }
  /** @param {number} x @param {number} y @param {string} text */
  #claim(x, y, text) {
    const cell = `${Math.floor(x / CELL)} ${Math.floor(y / CELL)}`,
      all = this.#names.get(cell) ?? [];
    all.push({ x, y, half: Labels.#half(text) });
    this.#names.set(cell, all);
  }
  /** A spot beside the `end` of a row, on the side away from the `next` seat, unless it is nearer than `near` to a seat.
   * @param {number} end @param {number} next @param {number} away @param {number} near */
  #beside(end, next, away, near) {
    const { model } = this,
      dx = model.x[end] - model.x[next] || (end === next ? -1 : 0),
      dy = model.y[end] - model.y[next],
      far = Math.hypot(dx, dy) || 1,
      x = model.x[end] + (dx / far) * away,
      y = model.y[end] + (dy / far) * away;
    return this.#taken(x - near, y - near, x + near, y + near) ? null : { x, y };
  }

  /** How large a section's name can be inside its outline, and its short id. @param {number} s */
  nameSize(s) {
    const one = this.model.sections[s];
    return (this.#sizes[s] ??= [this.#measure(one, one.name), this.#measure(one, one.id)]);
  }
  /** @param {Section} one @param {string} text */
  #measure(one, text) {
    let low = 0,
      high = Math.max(one.box[2] - one.box[0], one.box[3] - one.box[1]);
    for (let tries = 0; tries < 12; tries++) {
      const size = (low + high) / 2,
        w = size * 0.33 * Math.max(1, text.length) + 2,
        h = size * 0.45;
      const inside = [-1, 1].every((sx) =>
        [-1, 1].every((sy) => this.model.contains(one, one.cx + sx * w, one.cy + sy * h))
      );
      if (inside) low = size;
      else high = size;
    }
    return low;
  }

  /** Choose a spot beside each of these sections for a name of this height; none where every spot would cover seats or
   * rows' names, be nearer to another section, or lie out of sight.
   * @param {number[]} shown @param {number} height @param {Box} seen @param {boolean} rows whether rows' names are shown */
  choose(shown, height, seen, rows) {
    /** @type {Box[]} */
    const used = this.model.doc.decor.map((d) => [d.x, d.y, d.x + d.w, d.y + d.h]);
    this.spots = [];
    if (rows)
      for (const s of shown)
        for (const { x, y } of this.rows(s))
          if (x > seen[0] && x < seen[2] && y > seen[1] && y < seen[3]) used.push([x - 4, y - 4, x + 4, y + 4]);
    for (const s of shown) {
      const one = this.model.sections[s];
      this.spots[s] = one.area
        ? null
        : (this.#spot(one, one.name, height, seen, used) ?? this.#spot(one, one.id, height, seen, used));
    }
  }

  /** @param {Section} one @param {string} text @param {number} height @param {Box} seen @param {Box[]} used @returns {Label | null} */
  #spot(one, text, height, seen, used) {
    const w = height * 0.36 * Math.max(2, text.length),
      h = height * 0.62,
      points = around(one);
    for (const beside of BESIDE)
      for (const [px, py, nx, ny] of points) {
        const away = Math.abs(nx) * w + Math.abs(ny) * h + beside,
          x = px + nx * away,
          y = py + ny * away,
          far = beside + height;
        /** @type {Box} */
        const box = [x - w, y - h, x + w, y + h];
        if (box[0] < seen[0] || box[1] < seen[1] || box[2] > seen[2] || box[3] > seen[3]) continue;
        if (used.some((b) => b[0] < box[2] && b[2] > box[0] && b[1] < box[3] && b[3] > box[1])) continue;
        if (this.#taken(box[0] - 4, box[1] - 4, box[2] + 4, box[3] + 4)) continue;
        if (this.model.hitSection(x, y) >= 0 || this.model.hitSection(x + nx * far, y + ny * far) >= 0) continue;
        used.push(box);
        return { x, y, text };
      }
    return null;
  }
}

/** Points along an outline with the direction that leads out of it, the upper ones first.
 * @param {Section} one @returns {[number, number, number, number][]} */
function around({ outline, cx, cy }) {
  /** @type {[number, number, number, number][]} */
  const points = [],
    n = outline.length / 2;
  for (let i = 0; i < n; i++) {
    const ax = outline[2 * i],
      ay = outline[2 * i + 1],
      bx = outline[(2 * i + 2) % outline.length],
      by = outline[(2 * i + 3) % outline.length],
      long = Math.hypot(bx - ax, by - ay);
    if (long < 1) continue;
    const x = (ax + bx) / 2,
      y = (ay + by) / 2;
    let nx = (by - ay) / long,
      ny = (ax - bx) / long;
    if (nx * (x - cx) + ny * (y - cy) < 0) [nx, ny] = [-nx, -ny];
    points.push([x, y, nx, ny]);
  }
  return points.sort((a, b) => a[1] - b[1] || a[0] - b[0]);
}
