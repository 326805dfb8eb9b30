// @ts-check
/** The seat map's model: geometry from the document `fsmap/1`, live states, counts by section. No DOM in here. */
export const FREE = 0,
  HELD = 1,
  SOLD = 2,
  BLOCKED = 3;
export const STEP_FREE = 1,
  COMPANION = 2,
  RESTRICTED = 4,
  GAP_AFTER = 8;
const MAGIC = 0x31535346,
  HEADER_BYTES = 24,
  MAX_VARINT_BYTES = 5,
  EDGE = 6,
  ARC_STEPS = 10;

/** A seat costs `price` plus `fee`, if there is one. @typedef {{id: number, key: string, name: string, price: number, fee?: number, cur: string}} Tier */
/** @typedef {{t: string, x: number, y: number, w: number, h: number, label: string}} Decor */
/** @typedef {{v: string, name: string, w: number, h: number, seats: number, tiers: Tier[], decor: Decor[], sections: any[][], detail: Record<string, any>[]}} MapDoc */
/** @typedef {[number, number, number, number]} Box left, top, right, bottom */
/** @typedef {{id: string, name: string, tier: number, base: number, n: number, rows: Uint32Array, rowNames: string[], area: boolean, box: Box, outline: Float32Array, cx: number, cy: number, free: number, fit: number, fits: Uint32Array, low: number, high: number}} Section `free` counts every free seat, `fit` those that match the filter, `fits` the same by tier */
/** @typedef {{i: number, id: string, section: Section, row: string, number: string, tier: Tier, state: number, flags: number, mine: boolean}} SeatInfo */

/** A … Z, AA …: the usual name of a row. @param {number} position */
export function rowLabel(position) {
  let label = "";
  for (let left = position + 1; left > 0; left = Math.floor((left - 1) / 26))
    label = String.fromCharCode(65 + ((left - 1) % 26)) + label;
  return label;
}

export class SeatModel {
  /** @param {MapDoc} doc */
  constructor(doc) {
    this.doc = doc;
    this.n = doc.seats;
    this.x = new Float32Array(this.n);
    this.y = new Float32Array(this.n);
    this.section = new Uint16Array(this.n);
    this.tier = new Uint8Array(this.n);
    this.flags = new Uint8Array(this.n);
    this.state = new Uint8Array(this.n);
    /** @type {Set<number>} */
    this.mine = new Set();
    /** @type {Section[]} */
    this.sections = [];
    this.epoch = 0;
    this.seq = 0;
    this.maxPrice = Infinity;
    this.stepFree = false;
    /** @type {Map<number, string[]>} rows whose seats are not numbered 1, 2, … by the row's first seat */
    this.odd = new Map();
    let base = 0;
    doc.sections.forEach((row, k) => {
      base = this.#place(row, doc.detail?.[k] ?? {}, k, base);
    });
    /** Where every seat is step-free, none is kept. */
    this.keeps = this.flags.some((flags) => !(flags & (STEP_FREE | COMPANION)));
    const boxes = this.sections.map((one) => one.box);
    /** @type {Box} */
    this.box = [
      Math.min(...boxes.map((b) => b[0])),
      Math.min(...boxes.map((b) => b[1])),
      Math.max(...boxes.map((b) => b[2])),
      Math.max(...boxes.map((b) => b[3]))
    ];
  }

  /** @param {any[]} row @param {Record<string, any>} detail @param {number} k @param {number} base */
  #place(row, detail, k, base) {
    /** @type {number[]} */
    const counts = row[row.length - 1];
    const kind = row[2],
      rows = new Uint32Array(counts.length),
      points = kind === "x" ? row[3] : null;
    /** @type {Box} */
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    let i = base,
      px = 0,
      py = 0;
    counts.forEach((count, r) => {
      rows[r] = i;
      if (detail.numbers?.[r]) this.odd.set(i, detail.numbers[r]);
      for (let j = 0; j < count; j++, i++) {
        if (points) {
          px += points[2 * (i - base)] / 100;
          py += points[2 * (i - base) + 1] / 100;
        } else [px, py] = this.#point(row, r, j, count);
        this.x[i] = px;
        this.y[i] = py;
        this.section[i] = k;
        this.tier[i] = row[1];
        box[0] = Math.min(box[0], px);
        box[1] = Math.min(box[1], py);
        box[2] = Math.max(box[2], px);
        box[3] = Math.max(box[3], py);
      }
    });
    spread(detail.tiers, this.tier, base);
    spread(detail.flags, this.flags, base);
    const area = kind === "ga";
    if (area) [box[0], box[1], box[2], box[3]] = [row[3], row[4], row[3] + row[5], row[4] + row[6]];
    const prices = [...new Set(this.tier.subarray(base, i))].map((number) => this.doc.tiers[number].price);
    const names =
      detail.row_names?.map(
        (/** @type {string} */ name, /** @type {number} */ r) => name || detail.rows?.[r] || rowLabel(r)
      ) ?? detail.rows;
    this.sections.push({
      id: row[0],
      name: detail.name || row[0],
      tier: row[1],
      base,
      n: i - base,
      rows,
      area,
      box,
      free: 0,
      fit: 0,
      fits: new Uint32Array(this.doc.tiers.length),
      rowNames: names ?? (area ? ["GA"] : counts.map((_, r) => rowLabel(r))),
      low: Math.min(...prices),
      high: Math.max(...prices),
      ...(kind === "a"
        ? this.#bow(row, counts.length)
        : kind === "x"
          ? this.#around(rows, i, box)
          : this.#rectangle(box, area ? 0 : EDGE))
    });
    return i;
  }

  /** @param {any[]} row @param {number} r @param {number} j @param {number} count @returns {[number, number]} */
  #point(row, r, j, count) {
    if (row[2] === "a") {
      const angle = row[3] + ((row[4] - row[3]) * (j + 0.5)) / count;
      return [
        this.doc.w / 2 + (row[5] + r * row[7]) * Math.cos(angle),
        this.doc.h / 2 + (row[6] + r * row[7]) * Math.sin(angle)
      ];
    }
    if (row[2] === "g") return [row[3] + j * row[5], row[4] + r * row[6]];
    const columns = Math.max(1, Math.ceil(Math.sqrt((count * row[5]) / Math.max(1, row[6]))));
    return [
      row[3] + ((j % columns) + 0.5) * (row[5] / columns),
      row[4] + (Math.floor(j / columns) + 0.5) * (row[6] / Math.ceil(count / columns))
    ];
  }

  /** @param {any[]} row @param {number} rows */
  #bow(row, rows) {
    const [, , , from, to, rx, ry, step] = row,
      depth = (rows - 1) * step,
      ox = this.doc.w / 2,
      oy = this.doc.h / 2,
      outline = [];
    for (const [side, sign] of [
      [-EDGE, 1],
      [depth + EDGE, -1]
    ])
      for (let s = 0; s <= ARC_STEPS; s++) {
        const angle = sign > 0 ? from + ((to - from) * s) / ARC_STEPS : to - ((to - from) * s) / ARC_STEPS;
        outline.push(ox + (rx + side) * Math.cos(angle), oy + (ry + side) * Math.sin(angle));
      }
    const middle = (from + to) / 2;
    return {
      outline: Float32Array.from(outline),
      cx: ox + (rx + depth / 2) * Math.cos(middle),
      cy: oy + (ry + depth / 2) * Math.sin(middle)
    };
  }

  /** The outline of rows that lie anywhere: along the first row, the rows' ends, the last row and back.
   * @param {Uint32Array} rows @param {number} end @param {Box} b */
  #around(rows, end, b) {
    const last = (/** @type {number} */ r) => (r + 1 < rows.length ? rows[r + 1] : end) - 1,
      along = [];
    for (let i = last(0); i >= rows[0]; i--) along.push(i);
    for (let r = 1; r < rows.length; r++) along.push(rows[r]);
    for (let i = rows[rows.length - 1]; i <= last(rows.length - 1); i++) along.push(i);
    for (let r = rows.length - 2; r > 0; r--) along.push(last(r));
    const outline = [];
    for (const i of along) {
      const [dx, dy] = this.#outward(i, rows, last, b),
        far = Math.hypot(dx, dy) || 1;
      outline.push(this.x[i] + (dx / far) * 9, this.y[i] + (dy / far) * 9);
    }
    const r = rows.length >> 1,
      middle = (rows[r] + last(r)) >> 1;
    return outline.length >= 6
      ? { outline: Float32Array.from(outline), cx: this.x[middle], cy: this.y[middle] }
      : this.#rectangle(b, EDGE);
  }

  /** The way out of a section from a seat at its edge: away from the next row, and at a row's end away from the row.
   * @param {number} i @param {Uint32Array} rows @param {(r: number) => number} last @param {Box} b @returns {[number, number]} */
  #outward(i, rows, last, b) {
    let r = 0;
    while (r + 1 < rows.length && rows[r + 1] <= i) r++;
    const [from, to] = [rows[r], last(r)],
      beside = r ? r - 1 : r + 1;
    if (rows.length < 2 || from === to) return [this.x[i] - (b[0] + b[2]) / 2, this.y[i] - (b[1] + b[3]) / 2];
    const [one, next] = [Math.max(from, i - 1), Math.min(to, i + 1)],
      [tx, ty] = [this.x[next] - this.x[one], this.y[next] - this.y[one]],
      long = Math.hypot(tx, ty) || 1,
      near = nearestOf(rows[beside], last(beside) + 1, (k) => Math.hypot(this.x[k] - this.x[i], this.y[k] - this.y[i])),
      side = Math.sign((this.x[i] - this.x[near]) * -ty + (this.y[i] - this.y[near]) * tx) / long,
      end = i === from ? -1 / long : i === to ? 1 / long : 0,
      out = r === 0 || r === rows.length - 1 ? side : 0;
    return [-ty * out + tx * end, tx * out + ty * end];
  }

  /** @param {Box} b @param {number} edge */
  #rectangle(b, edge) {
    const outline = [
      b[0] - edge,
      b[1] - edge,
      b[2] + edge,
      b[1] - edge,
      b[2] + edge,
      b[3] + edge,
      b[0] - edge,
      b[3] + edge
    ];
    return { outline: Float32Array.from(outline), cx: (b[0] + b[2]) / 2, cy: (b[1] + b[3]) / 2 };
  }

  /** Take a snapshot over: "FSS1", u32 seats, u64 sequence, u64 epoch, two bits a seat. @param {ArrayBuffer} body @returns {number[]} the seats that changed */
  applySnapshot(body) {
    const view = new DataView(body);
    if (body.byteLength < HEADER_BYTES || view.getUint32(0, true) !== MAGIC) throw new Error("no seat-state snapshot");
    if (view.getUint32(4, true) !== this.n || body.byteLength !== HEADER_BYTES + Math.ceil(this.n / 4))
      throw new Error("a snapshot of another map");
    const packed = new Uint8Array(body, HEADER_BYTES),
      changed = [];
    for (let i = 0; i < this.n; i++) {
      const state = (packed[i >> 2] >> ((i & 3) * 2)) & 3;
      if (state !== this.state[i]) {
        this.state[i] = state;
        changed.push(i);
      }
    }
    this.recount();
    this.seq = Number(view.getBigUint64(8, true));
    this.epoch = Number(view.getBigUint64(16, true));
    return changed;
  }

  /** Take one frame over, all of it or (when it is damaged) nothing. States are absolute: twice does no harm.
   * @param {string} frame base64 of varint(gap << 2 | state) @returns {number[]} the seats that changed */
  applyFrame(frame) {
    const packed = atob(frame);
    /** @type {number[]} */
    const seats = [];
    /** @type {number[]} */
    const states = [];
    let i = 0,
      value = 0,
      bytes = 0;
    for (let p = 0; p < packed.length; p++) {
      const byte = packed.charCodeAt(p);
      value += (byte & 127) * 2 ** (7 * bytes++);
      if (byte > 127) {
        if (bytes >= MAX_VARINT_BYTES) throw new Error("a number is too long");
        continue;
      }
      i += Math.floor(value / 4);
      if (i >= this.n) throw new Error("a seat outside the map");
      seats.push(i);
      states.push(value & 3);
      value = bytes = 0;
    }
    if (bytes) throw new Error("a frame is cut off");
    return seats.filter((seat, k) => this.#set(seat, states[k]));
  }

  /** Somebody else was faster. @param {number} i */
  lose(i) {
    this.mine.delete(i);
    if (this.state[i] === FREE) this.#set(i, HELD);
  }

  /** @param {number} i @param {number} state */
  #set(i, state) {
    const before = this.state[i];
    if (before === state) return false;
    const section = this.sections[this.section[i]],
      by = Number(state === FREE) - Number(before === FREE);
    section.free += by;
    if (by && this.matches(i)) {
      section.fit += by;
      section.fits[this.tier[i]] += by;
    }
    this.state[i] = state;
    return true;
  }

  /** Ask for seats up to a price, or only for step-free ones: the sections count anew what matches. @param {number} maxPrice @param {boolean} stepFree */
  filter(maxPrice, stepFree) {
    this.maxPrice = maxPrice;
    this.stepFree = stepFree;
    this.recount();
  }

  /** Count each section's free seats, and those that match the filter, from nothing. */
  recount() {
    for (const one of this.sections) {
      one.free = one.fit = 0;
      one.fits.fill(0);
      for (let i = one.base; i < one.base + one.n; i++)
        if (this.state[i] === FREE) {
          one.free++;
          if (this.matches(i)) {
            one.fit++;
            one.fits[this.tier[i]]++;
          }
        }
    }
  }

  /** Which row of its section a seat is in. @param {number} i */
  rowOf(i) {
    const { rows } = this.sections[this.section[i]];
    let low = 0,
      high = rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (rows[middle] <= i) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** @param {Section} section @param {number} r @returns {[number, number]} first seat of a row, and the one after its last */
  rowEnds(section, r) {
    return [section.rows[r], r + 1 < section.rows.length ? section.rows[r + 1] : section.base + section.n];
  }

  /** A seat's number within its row. @param {number} i */
  numberOf(i) {
    const first = this.sections[this.section[i]].rows[this.rowOf(i)];
    return this.odd.get(first)?.[i - first] ?? String(i - first + 1);
  }

  /** @param {number} i @returns {SeatInfo} */
  seat(i) {
    const section = this.sections[this.section[i]],
      r = this.rowOf(i),
      number = this.numberOf(i),
      rowId = this.doc.detail?.[this.section[i]]?.rows?.[r] ?? (section.area ? "GA" : rowLabel(r));
    return {
      i,
      id: `${section.id}-${rowId}-${number}`,
      section,
      row: section.rowNames[r],
      number,
      tier: this.doc.tiers[this.tier[i]],
      state: this.state[i],
      flags: this.flags[i],
      mine: this.mine.has(i)
    };
  }

  /** Whether a seat is kept for people who ask for step-free places, and for who comes with them. @param {number} i */
  isKept(i) {
    return this.keeps && (this.flags[i] & (STEP_FREE | COMPANION)) > 0;
  }

  /** Whether a seat is what was asked for, free or not. @param {number} i */
  matches(i) {
    return (
      this.doc.tiers[this.tier[i]].price <= this.maxPrice &&
      (this.stepFree ? (this.flags[i] & (STEP_FREE | COMPANION)) > 0 : !this.isKept(i))
    );
  }

  /** Free seats in place of lost ones, side by side in one row: beside the seats that are kept, else where the lost ones
   * were, and at a price like theirs. Never one that is chosen already. @param {number[]} lost @returns {number[]} */
  near(lost) {
    const kept = [...this.mine],
      around = kept.length ? kept : lost,
      price = (/** @type {number} */ i) => this.doc.tiers[this.tier[i]].price,
      cx = around.reduce((sum, i) => sum + this.x[i], 0) / around.length,
      cy = around.reduce((sum, i) => sum + this.y[i], 0) / around.length,
      fits = (/** @type {number} */ i) => this.state[i] === FREE && !this.mine.has(i) && this.matches(i);
    /** @type {number[]} */
    let best = [],
      least = Infinity;
    for (const section of this.sections)
      for (let r = 0; !section.area && r < section.rows.length; r++) {
        const [from, to] = this.rowEnds(section, r);
        for (let i = from; i + lost.length <= to; i++) {
          let together = true;
          for (let j = 0; j < lost.length && together; j++)
            together = fits(i + j) && (j === lost.length - 1 || !(this.flags[i + j] & GAP_AFTER));
          const middle = i + (lost.length >> 1),
            far =
              Math.hypot(this.x[middle] - cx, this.y[middle] - cy) * (1 + Math.abs(price(i) - price(lost[0])) / 5000);
          if (together && far < least) {
            least = far;
            best = Array.from({ length: lost.length }, (_, j) => i + j);
          }
        }
      }
    return best;
  }

  /** The seat nearest to a point, within `reach`; -1 for none. @param {number} wx @param {number} wy @param {number} reach */
  hit(wx, wy, reach) {
    let best = -1,
      least = reach * reach;
    for (const one of this.sections) {
      const b = one.box;
      if (one.area || wx < b[0] - reach || wx > b[2] + reach || wy < b[1] - reach || wy > b[3] + reach) continue;
      for (let i = one.base; i < one.base + one.n; i++) {
        const dx = this.x[i] - wx,
          dy = this.y[i] - wy,
          far = dx * dx + dy * dy;
        if (far < least) {
          least = far;
          best = i;
        }
      }
    }
    return best;
  }

  /** The section under a point; -1 for none. @param {number} wx @param {number} wy */
  hitSection(wx, wy) {
    return this.sections.findIndex((one) => this.contains(one, wx, wy));
  }

  /** Whether a point lies inside a section's outline. @param {Section} one @param {number} wx @param {number} wy */
  contains({ box: b, outline: p }, wx, wy) {
    if (wx < b[0] - 10 || wx > b[2] + 10 || wy < b[1] - 10 || wy > b[3] + 10) return false;
    let inside = false;
    for (let i = 0, j = p.length - 2; i < p.length; j = i, i += 2)
      if (p[i + 1] > wy !== p[j + 1] > wy && wx < ((p[j] - p[i]) * (wy - p[i + 1])) / (p[j + 1] - p[i + 1]) + p[i])
        inside = !inside;
    return inside;
  }

  /** The next seat from `i` in a direction, for arrow keys; -1 for none. Along the row it is the neighbour in the row, and
   * a row ends where it ends; across it is the nearest seat of the row before or behind, and after the last row the
   * nearest of another section. @param {number} i @param {number} dx @param {number} dy */
  step(i, dx, dy) {
    const one = this.sections[this.section[i]],
      r = this.rowOf(i),
      [from, to] = this.rowEnds(one, r),
      along = (/** @type {number} */ k) => (this.x[k] - this.x[i]) * dx + (this.y[k] - this.y[i]) * dy,
      aside = (/** @type {number} */ k) => Math.abs((this.x[k] - this.x[i]) * dy - (this.y[k] - this.y[i]) * dx),
      beside = [i - 1, i + 1].filter((k) => k >= from && k < to),
      inRow = beside.some((k) => Math.abs(along(k)) >= aside(k));
    if (inRow) return beside.find((k) => along(k) > 0) ?? -1;
    for (const next of [r - 1, r + 1]) {
      if (next < 0 || next >= one.rows.length) continue;
      const [first, end] = this.rowEnds(one, next),
        near = nearestOf(first, end, (k) => Math.hypot(along(k), aside(k)));
      if (along(near) > 0) return near;
    }
    return this.#across(i, along, aside);
  }
  /** The nearest seat of another section in a direction. @param {number} i @param {(k: number) => number} along @param {(k: number) => number} aside */
  #across(i, along, aside) {
    const reach = 60,
      cost = (/** @type {number} */ k) => (along(k) > 2 && along(k) <= reach ? along(k) + aside(k) * 2.2 : Infinity);
    let best = -1;
    this.sections.forEach((one, s) => {
      const b = one.box;
      if (one.area || s === this.section[i] || this.x[i] < b[0] - reach || this.x[i] > b[2] + reach) return;
      if (this.y[i] < b[1] - reach || this.y[i] > b[3] + reach) return;
      const near = nearestOf(one.base, one.base + one.n, cost);
      if (cost(near) < (best < 0 ? Infinity : cost(best))) best = near;
    });
    return best;
  }
}

/** The seat of [from, to) that costs least. @param {number} from @param {number} to @param {(k: number) => number} cost */
function nearestOf(from, to, cost) {
  let best = from;
  for (let k = from + 1; k < to; k++) if (cost(k) < cost(best)) best = k;
  return best;
}

/** Write run-length coded values from `base` on. @param {[number, number][] | undefined} runs @param {Uint8Array} into @param {number} base */
function spread(runs, into, base) {
  let at = base;
  for (const [length, value] of runs ?? []) {
    into.fill(value, at, at + length);
    at += length;
  }
}
