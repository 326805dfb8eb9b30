// @ts-check
/** Where the names go: a row's at its ends, a section's beside its seats and never over one. All in the map's units. */

const CELL = 24,
  NEAR = 6.5,
  ROW_AWAY = 8.6,
  /** @type {[number, number]} */ NARROW = [7.2, 5.6],
  BESIDE = [3, 15];

/** @typedef {import("./model.js").SeatModel} SeatModel @typedef {import("./model.js").Section} Section @typedef {import("./model.js").Box} Box */
/** @typedef {{x: number, y: number, text: string}} Label */

export class Labels {
  /** @type {{columns: number, lines: number, first: Uint32Array, seats: Uint32Array} | undefined} seats by cell */ #cells;
  /** @type {(Label[] | undefined)[]} */ #rows = [];
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

  /** The names at both ends of a section's rows, where there is room; in a narrow aisle only where the row begins, so
   * that the section on the other side does not write its names into the same aisle. @param {number} s @returns {Label[]} */
  rows(s) {
    return (this.#rows[s] ??= this.#placeRows(this.model.sections[s]));
  }
  /** @param {Section} one @returns {Label[]} */
  #placeRows(one) {
    /** @type {Label[]} */
    const made = [];
    for (let r = 0; !one.area && r < one.rows.length; r++) {
      const [from, to] = this.model.rowEnds(one, r),
        last = to - 1,
        text = one.rowNames[r],
        first = this.#beside(from, Math.min(from + 1, last), ROW_AWAY, NEAR),
        other = last > from ? this.#beside(last, last - 1, ROW_AWAY, NEAR) : null;
      const found = first || other ? [first, other] : [this.#beside(from, Math.min(from + 1, last), ...NARROW)];
      for (const spot of found) if (spot) made.push({ ...spot, text });
    }
    return made;
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
