// @ts-check
/** What an organiser does with a plan: choose, move, turn, bend, copy, remove, undo. Every change is said aloud. */
import { say } from "../../dom.js";
import { number, t, tn } from "../../words.js";
import {
  bendChosen,
  chosenPoints,
  duplicateChosen,
  History,
  moveChosen,
  removeChosen,
  renamed,
  rotateChosen,
  withinPlan
} from "./draft.js";
import { bendOf, boundsOf, snapMove } from "./geometry.js";

/** @typedef {import("./draft.js").Draft} Draft */
/** @typedef {import("./draft.js").Chosen} Chosen */
/** @typedef {"section" | "row" | "seat"} Level */
export const GRID = 5,
  FAR = 50,
  TURN = 5,
  BEND = 5;

export class Arranger {
  /** @type {Level} */ level = "section";
  snaps = true;
  several = false;

  /** @param {import("./board.js").Board} board @param {Draft} first @param {Draft} now @param {() => void} onChange */
  constructor(board, first, now, onChange) {
    this.board = board;
    this.first = first;
    this.history = new History(first);
    this.history.add(now);
    this.onChange = onChange;
    board.draft = now;
  }
  get draft() {
    return this.history.now;
  }
  get chosen() {
    return this.board.chosen;
  }
  get changed() {
    return this.draft !== this.first;
  }

  /** @param {Iterable<string>} keys */
  choose(keys) {
    this.board.chosen = new Set(keys);
    this.board.repaint();
    this.onChange();
  }
  /** @param {string} key */
  toggle(key) {
    const keys = new Set(this.chosen);
    if (!keys.delete(key)) keys.add(key);
    this.choose(keys);
  }
  /** Other things are chosen from now on. @param {Level} level */
  setLevel(level) {
    if (this.level === level) return;
    this.level = level;
    this.choose([]);
  }

  /** Take a new draft over as one step. @param {Draft} draft @param {string} [words] */
  commit(draft, words = "") {
    this.history.add(draft);
    this.#show(words);
  }
  /** @param {string} words */
  #show(words) {
    this.board.draft = this.draft;
    this.board.shift = [0, 0];
    this.board.wrong = new Set();
    this.board.repaint();
    this.onChange();
    if (words) say(words);
  }
  undo() {
    if (!this.history.canUndo) return;
    this.history.undo();
    this.#choosable();
    this.#show(t("Undone."));
  }
  redo() {
    if (!this.history.canRedo) return;
    this.history.redo();
    this.#choosable();
    this.#show(t("Redone."));
  }
  /** Only what still exists stays chosen. */
  #choosable() {
    const keys = new Set(this.draft.sections.flatMap((one) => [one.key, ...one.rows.map((row) => row.key)]));
    this.board.chosen = new Set([...this.chosen].filter((key) => keys.has(key.split("/").slice(0, 2).join("/"))));
  }

  /** A move by the pointer: on the grid unless that is switched off, and never off the plan.
   * @param {number} dx @param {number} dy @param {boolean} free @returns {[number, number]} */
  aim(dx, dy, free) {
    const [x, y] = boundsOf(chosenPoints(this.draft, this.chosen)),
      [mx, my] = this.snaps && !free ? snapMove([x, y], dx, dy, GRID) : [dx, dy];
    return withinPlan(this.draft, this.chosen, mx, my);
  }
  /** @param {number} dx @param {number} dy */
  move(dx, dy) {
    if (!this.#anything()) return;
    const [mx, my] = withinPlan(this.draft, this.chosen, dx, dy);
    if (!mx && !my) return;
    this.commit(moveChosen(this.draft, this.chosen, mx, my));
    const [x, y] = boundsOf(chosenPoints(this.draft, this.chosen));
    this.board.reveal(x, y);
    say(t("{what}: now at {x}, {y}.", { what: this.what, x: number(x), y: number(y) }));
  }
  /** @param {number} degrees */
  rotate(degrees) {
    if (!this.#anything()) return;
    this.commit(rotateChosen(this.draft, this.chosen, degrees), this.turned(degrees));
  }
  /** @param {number} degrees */
  bend(degrees) {
    if (!this.#anything()) return;
    this.commit(bendChosen(this.draft, this.chosen, degrees));
    say(this.bent());
  }
  /** @param {number} degrees */
  turned(degrees) {
    return t("{what}: rotated by {n}°.", { what: this.what, n: number(Math.round(degrees)) });
  }
  bent() {
    const row = chosenPoints(this.draft, this.chosen).find((points) => points.length > 4);
    return t("{what}: bent by {n}°.", { what: this.what, n: number(row ? Math.round(bendOf(row)) : 0) });
  }
  duplicate() {
    const made = duplicateChosen(this.draft, this.chosen);
    if (made.draft === this.draft) return;
    this.board.chosen = made.chosen;
    this.commit(made.draft, t("Copied: {what}.", { what: this.whatIn(made.draft) }));
  }
  remove() {
    const what = this.what,
      left = removeChosen(this.draft, this.chosen);
    if (!this.chosen.size) return;
    if (!left) {
      say(t("The last section cannot be removed."));
      return;
    }
    if (
      left.sections.length === this.draft.sections.length &&
      left.sections.every((s, i) => s === this.draft.sections[i])
    )
      return;
    this.board.chosen = new Set();
    this.commit(left, t("Removed: {what}.", { what }));
  }
  /** @param {string} id */
  rename(id) {
    const [key] = this.chosen;
    if (this.chosen.size === 1 && id && id !== this.labelOf(key)) this.commit(renamed(this.draft, key, id));
  }
  #anything() {
    if (!this.chosen.size) say(t("Nothing selected"));
    return this.chosen.size > 0;
  }

  /** The label of a section or row. @param {string} key */
  labelOf(key) {
    const section = this.draft.sections.find((one) => one.key === key.split("/")[0]);
    if (!section || key === section.key) return section?.id ?? "";
    return section.rows.find((row) => row.key === key)?.id ?? "";
  }
  /** What is chosen, in words. */
  get what() {
    return this.whatIn(this.draft);
  }
  /** @param {Draft} draft */
  whatIn(draft) {
    if (this.chosen.size !== 1) return tn("{n} item", "{n} items", this.chosen.size);
    const [s, r, i] = [...this.chosen][0].split("/"),
      section = draft.sections.find((one) => one.key === s),
      row = section?.rows.find((one) => one.key === `${s}/${r}`);
    if (!section) return "";
    if (!row) return t("Section {section}", { section: section.name || section.id });
    if (i === undefined) return t("Row {row} of section {section}", { row: row.id, section: section.id });
    return t("Seat {seat}", { seat: `${section.id}-${row.id}-${row.numbers[Number(i)]}` });
  }

  /** What is at a place of the plan, at the level that is chosen now; "" for nothing.
   * @param {number} x @param {number} y @param {number} reach */
  hit(x, y, reach) {
    let best = "",
      least = reach * reach;
    for (const section of this.draft.sections) {
      if (section.box) {
        const [left, top, w, h] = section.box;
        if (!best && x >= left && x <= left + w && y >= top && y <= top + h) best = section.key;
        continue;
      }
      for (const row of section.rows)
        for (let at = 0; at < row.points.length; at += 2) {
          const far = (row.points[at] - x) ** 2 + (row.points[at + 1] - y) ** 2;
          if (far < least) {
            least = far;
            best = this.level === "section" ? section.key : this.level === "row" ? row.key : `${row.key}/${at / 2}`;
          }
        }
    }
    return best;
  }
  /** What lies inside a box of the plan. @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  within(x0, y0, x1, y1) {
    const found = new Set(),
      inside = (/** @type {number} */ x, /** @type {number} */ y) => x >= x0 && x <= x1 && y >= y0 && y <= y1;
    for (const section of this.draft.sections) {
      if (section.box && inside(section.box[0] + section.box[2] / 2, section.box[1] + section.box[3] / 2))
        found.add(section.key);
      for (const row of section.rows)
        for (let at = 0; at < row.points.length; at += 2)
          if (inside(row.points[at], row.points[at + 1]))
            found.add(this.level === "section" ? section.key : this.level === "row" ? row.key : `${row.key}/${at / 2}`);
    }
    return found;
  }
  /** Choose the next or the previous section, row or seat. @param {1 | -1} way */
  step(way) {
    const keys = this.draft.sections.flatMap((section) => {
      if (this.level === "section" || section.box) return [section.key];
      if (this.level === "row") return section.rows.map((row) => row.key);
      return section.rows.flatMap((row) => row.numbers.map((_, i) => `${row.key}/${i}`));
    });
    const last = [...this.chosen].pop() ?? "",
      at = keys.indexOf(last),
      next = keys[at < 0 ? (way > 0 ? 0 : keys.length - 1) : (at + way + keys.length) % keys.length];
    this.choose([next]);
    const [x0, y0, x1, y1] = boundsOf(chosenPoints(this.draft, this.chosen));
    this.board.reveal((x0 + x1) / 2, (y0 + y1) / 2);
    say(t("{what}: now at {x}, {y}.", { what: this.what, x: number(x0), y: number(y0) }));
  }
  all() {
    this.choose(this.within(-Infinity, -Infinity, Infinity, Infinity));
    say(this.what);
  }
}
