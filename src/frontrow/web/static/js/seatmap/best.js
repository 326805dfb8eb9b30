// @ts-check
/** Which seats to propose, and which seat a choice would leave alone. No DOM in here.
 *
 * The rules are those of the server (`boxoffice/seats/model/best_seats.py`), which decides in the end; a test compares
 * the two. A proposal costs the server nothing and takes no seat from anybody. */
import { COMPANION, FREE, GAP_AFTER, RESTRICTED, STEP_FREE } from "./model.js";

/** @typedef {import("./model.js").SeatModel} SeatModel @typedef {import("./model.js").Section} Section */
/** Seats of one row with no aisle between them, from plan index `at`; `column2` is twice the first seat's column, 0 is
 * the middle of the row. @typedef {{at: number, length: number, row: number, column2: number}} Run */
/** @typedef {{count: number, maxPrice: number, stepFree: boolean, apart: boolean}} Wish */
/** @typedef {(i: number) => boolean} Test */

const ODD_SIDE = 2;

export class BestSeats {
  /** @type {Run[][]} by section, best first */ #runs = [];
  /** @param {SeatModel} model @param {number[]} order sections, best first @param {Record<string, number[]>} ranks of the rows, where they are not in order */
  constructor(model, order, ranks) {
    this.model = model;
    this.order = order;
    this.ranks = ranks;
  }

  /** The best seats for a wish; none when there are none. @param {Wish} wish @param {Set<number>} own count as free */
  find(wish, own) {
    const { model } = this,
      free = (/** @type {number} */ i) => model.state[i] === FREE || own.has(i),
      fits = (/** @type {number} */ i) => free(i) && this.#allows(wish, i);
    for (const grade of wish.apart ? [together, sameRow, twoRows, anywhere] : [together, sameRow, twoRows])
      for (const s of this.order) {
        const one = model.sections[s];
        if (one.area || one.free + own.size < wish.count) continue;
        const found = grade(this.runs(s), wish.count, free, fits);
        if (found.length) return found;
      }
    return [];
  }

  /** @param {Wish} wish @param {number} i */
  #allows(wish, i) {
    const { model } = this,
      flags = model.flags[i];
    if (model.doc.tiers[model.tier[i]].price > wish.maxPrice || flags & RESTRICTED) return false;
    if (flags & COMPANION) return wish.stepFree && wish.count > 1;
    return wish.stepFree ? (flags & STEP_FREE) > 0 : !model.isKept(i);
  }

  /** The rows of a section, split at aisles: best rank first; within a row, nearest to the middle first. @param {number} s @returns {Run[]} */
  runs(s) {
    return (this.#runs[s] ??= this.#split(this.model.sections[s]));
  }
  /** @param {Section} one */
  #split(one) {
    const made = [];
    for (let row = 0; row < one.rows.length; row++) {
      const [from, to] = this.model.rowEnds(one, row);
      for (let i = from, at = from; i < to; i++) {
        if (i < to - 1 && !(this.model.flags[i] & GAP_AFTER)) continue;
        const length = i - at + 1,
          column2 = 2 * (at - from) - (to - from - 1);
        made.push({ at, length, row, column2, rank: this.ranks[one.id]?.[row] ?? row });
        at = i + 1;
      }
    }
    const off = (/** @type {Run} */ run) => Math.abs(run.column2 + run.length - 1);
    return made.sort((a, b) => a.rank - b.rank || a.row - b.row || off(a) - off(b) || a.at - b.at);
  }

  /** The seats that a choice would leave as single free seats although that is avoidable. @param {Set<number>} chosen @param {Set<number>} own */
  alone(chosen, own) {
    const { model } = this,
      free = (/** @type {number} */ i) => model.state[i] === FREE || own.has(i) || chosen.has(i),
      runs = new Set([...chosen].flatMap((i) => (this.#isArea(i) ? [] : [this.#runOf(i)]))),
      found = [];
    for (const run of runs)
      for (const [from, to] of stretches(run, free)) {
        const all = Array.from({ length: to - from }, (_, j) => from + j),
          taken = all.filter((i) => chosen.has(i)).length;
        if (!taken || taken >= to - from - 1) continue;
        found.push(
          ...all.filter(
            (i) => !chosen.has(i) && (i === from || chosen.has(i - 1)) && (i === to - 1 || chosen.has(i + 1))
          )
        );
      }
    return found;
  }

  /** The same number of seats a little to the side, so that no single seat is left; none if that does not work.
   * @param {number} lonely @param {Set<number>} chosen @param {Set<number>} own @returns {{from: number[], to: number[]} | null} */
  moved(lonely, chosen, own) {
    const { model } = this,
      run = this.#runOf(lonely),
      from = [...chosen].filter((i) => i >= run.at && i < run.at + run.length).sort((a, b) => a - b),
      rest = [...chosen].filter((i) => !from.includes(i));
    for (let far = 1; far < run.length; far++)
      for (const way of [far, -far]) {
        const to = from.map((i) => i + way),
          inside = to.every((i) => i >= run.at && i < run.at + run.length),
          had = (/** @type {number} */ i) =>
            chosen.has(i) || (model.matches(i) && (model.state[i] === FREE || own.has(i)));
        if (inside && to.every(had) && !this.alone(new Set([...rest, ...to]), own).length) return { from, to };
      }
    return null;
  }

  /** @param {number} i */
  #isArea(i) {
    return this.model.sections[this.model.section[i]].area;
  }
  /** @param {number} i */
  #runOf(i) {
    const all = this.runs(this.model.section[i]);
    return all.find((run) => run.at <= i && i < run.at + run.length) ?? all[0];
  }
}

/** Each longest stretch [from, to) of free seats in a run. @param {Run} run @param {Test} free @returns {[number, number][]} */
function stretches(run, free) {
  /** @type {[number, number][]} */
  const found = [];
  let from = -1;
  for (let i = run.at; i <= run.at + run.length; i++) {
    const open = i < run.at + run.length && free(i);
    if (open && from < 0) from = i;
    else if (!open && from >= 0) {
      found.push([from, i]);
      from = -1;
    }
  }
  return found;
}

/** @param {number} from @param {number} length */
const span = (from, length) => Array.from({ length }, (_, j) => from + j);

/** @param {Run[]} runs @param {number} count @param {Test} free @param {Test} fits */
const together = (runs, count, free, fits) => sideBySide(runs, count, free, fits, false);
/** @param {Run[]} runs @param {number} count @param {Test} free @param {Test} fits */
const sameRow = (runs, count, free, fits) => sideBySide(runs, count, free, fits, true);

/** @param {Run[]} runs @param {number} count @param {Test} free @param {Test} fits @param {boolean} lonelyOk */
function sideBySide(runs, count, free, fits, lonelyOk) {
  for (const run of runs) {
    let best = -1,
      least = Infinity;
    for (const [from, to] of stretches(run, free)) {
      let fitting = 0;
      for (let i = from; i < to; i++) {
        fitting = fits(i) ? fitting + 1 : 0;
        const start = i - count + 1,
          left = start - from,
          right = to - 1 - i;
        if (fitting < count || (!lonelyOk && (left === 1 || right === 1))) continue;
        const cost = Math.abs(run.column2 + 2 * (start - run.at) + count - 1) + ODD_SIDE * ((left % 2) + (right % 2));
        if (cost < least) [best, least] = [start, cost];
      }
    }
    if (best >= 0) return span(best, count);
  }
  return [];
}

/** The larger part in one row and the rest in the row in front or behind, the most even split first.
 * @param {Run[]} runs @param {number} count @param {Test} _ @param {Test} fits */
function twoRows(runs, count, _, fits) {
  for (let larger = (count + 1) >> 1; larger < count; larger++)
    for (const run of runs) {
      const at = starts(run, larger, fits);
      if (!at.length) continue;
      for (const other of runs) {
        if (Math.abs(other.row - run.row) !== 1) continue;
        const pair = nearest(run, at, larger, other, starts(other, count - larger, fits), count - larger);
        if (pair) return [...span(pair[0], larger), ...span(pair[1], count - larger)].sort((a, b) => a - b);
      }
    }
  return [];
}
/** Every seat of a run at which so many fitting seats begin. @param {Run} run @param {number} length @param {Test} fits */
function starts(run, length, fits) {
  const found = [];
  for (let i = run.at, fitting = 0; i < run.at + run.length; i++) {
    fitting = fits(i) ? fitting + 1 : 0;
    if (fitting >= length) found.push(i - length + 1);
  }
  return found;
}
/** The two stretches whose middles are nearest to each other and to the middle of the row; they must overlap.
 * @param {Run} run @param {number[]} at @param {number} larger @param {Run} other @param {number[]} others @param {number} smaller */
function nearest(run, at, larger, other, others, smaller) {
  let best = null,
    least = Infinity;
  for (const start of at) {
    const middle2 = run.column2 + 2 * (start - run.at) + larger - 1;
    for (const beside of others) {
      const apart2 = Math.abs(middle2 - (other.column2 + 2 * (beside - other.at) + smaller - 1)),
        cost = apart2 + Math.abs(middle2);
      if (apart2 < larger + smaller && cost < least) [best, least] = [[start, beside], cost];
    }
  }
  return best;
}

/** The first fitting seats, best run first. @param {Run[]} runs @param {number} count @param {Test} _ @param {Test} fits */
function anywhere(runs, count, _, fits) {
  const found = [];
  for (const run of runs)
    for (let i = run.at; i < run.at + run.length; i++)
      if (fits(i) && found.push(i) === count) return found.sort((a, b) => a - b);
  return [];
}
