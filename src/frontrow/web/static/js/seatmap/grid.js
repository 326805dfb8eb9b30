// @ts-check
/** One section as a grid of buttons: every seat says section, row, seat, price and state. One of them is in the tab
 * order; arrow keys, Home and End move within the grid. A large section is built a few rows at a time, so that the map
 * moves and the page answers meanwhile. */
import { h } from "../dom.js";
import { t } from "../words.js";
import { describe } from "./element.js";
import { COMPANION, FREE, GAP_AFTER, STEP_FREE } from "./model.js";

const AT_ONCE_MS = 6;

export class SeatGrid {
  #section = -1;
  #building = 0;
  /** @type {number[]} */ #alone = [];
  /** @type {Map<number, HTMLElement>} */ #buttons = new Map();
  /** @param {HTMLElement} box @param {import("./model.js").SeatModel} model @param {(i: number) => void} pick @param {(i: number) => void} focus */
  constructor(box, model, pick, focus) {
    this.box = box;
    this.model = model;
    this.focus = focus;
    box.addEventListener("click", (e) => {
      const button = this.#of(e);
      if (button) pick(Number(button.dataset.seat));
    });
    box.addEventListener("keydown", (e) => {
      if (this.#key(e)) e.preventDefault();
    });
  }
  /** @param {Event} e */
  #of(e) {
    return /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (e.target).closest("[data-seat]"));
  }
  close() {
    clearTimeout(this.#building);
    this.#section = -1;
    this.#buttons.clear();
    this.box.replaceChildren();
  }

  /** @param {number} s */
  open(s) {
    const one = this.model.sections[s];
    this.close();
    this.#section = s;
    this.box.setAttribute("aria-label", t("Seats of section {section}", { section: one.name }));
    this.#build(one, 0);
  }

  /** Add rows until it takes too long; the others in a later task. @param {import("./model.js").Section} one @param {number} r */
  #build(one, r) {
    this.#building = window.setTimeout(() => {
      const began = performance.now(),
        rows = [];
      while (r < one.rows.length && performance.now() - began < AT_ONCE_MS) rows.push(this.#row(one, r++));
      this.box.append(...rows);
      if (!this.box.querySelector("[tabindex='0']")) {
        const first = this.box.querySelector("[data-seat]:not([aria-disabled=true])");
        if (first || r === one.rows.length)
          /** @type {HTMLElement | null} */ (first ?? this.box.querySelector("[data-seat]"))?.setAttribute(
            "tabindex",
            "0"
          );
      }
      if (r < one.rows.length) this.#build(one, r);
    });
  }

  /** @param {import("./model.js").Section} one @param {number} r */
  #row(one, r) {
    const { model } = this,
      [from, to] = model.rowEnds(one, r),
      cells = [];
    for (let i = from; i < to; i++) {
      const button = h(
        "button",
        {
          type: "button",
          role: "gridcell",
          "data-seat": i,
          tabindex: -1,
          class: `t${model.tier[i] % 6}`,
          "data-flag": (model.flags[i] & (STEP_FREE | COMPANION)) > 0
        },
        model.numberOf(i)
      );
      if (model.flags[i] & GAP_AFTER) button.classList.add("gap");
      this.#buttons.set(i, button);
      this.#paint(i);
      cells.push(button);
    }
    return h("div", { role: "row" }, h("span", { role: "rowheader" }, one.rowNames[r]), ...cells);
  }

  /** @param {number[]} changed */
  refresh(changed) {
    for (const i of changed) if (this.model.section[i] === this.#section) this.#paint(i);
  }

  /** Mark the seats that a choice would leave alone. @param {number[]} alone */
  mark(alone) {
    const before = this.#alone;
    this.#alone = alone;
    for (const i of [...before, ...alone]) this.#paint(i);
  }

  /** The filter has changed: show again which seats match. */
  filter() {
    for (const i of this.#buttons.keys()) this.#paint(i);
  }

  /** @param {number} i */
  #paint(i) {
    const button = this.#buttons.get(i),
      mine = this.model.mine.has(i);
    button?.setAttribute("aria-label", describe(this.model.seat(i)));
    button?.setAttribute("aria-selected", String(mine));
    button?.classList.toggle("off", !mine && !this.model.matches(i));
    button?.classList.toggle("alone", this.#alone.includes(i));
    button?.setAttribute("aria-disabled", String(!mine && this.model.state[i] !== FREE));
  }

  /** @param {KeyboardEvent} e */
  #key(e) {
    const button = this.#of(e);
    if (!button) return false;
    const row = /** @type {HTMLElement} */ (button.closest("[role=row]")),
      all = /** @type {HTMLElement[]} */ ([...row.querySelectorAll("[data-seat]")]),
      at = all.indexOf(button);
    const flip = document.dir === "rtl" ? -1 : 1;
    const beside = (/** @type {Element | null} */ other) => {
      const seats = other ? /** @type {HTMLElement[]} */ ([...other.querySelectorAll("[data-seat]")]) : [];
      return seats[Math.min(at, seats.length - 1)];
    };
    /** @type {Record<string, () => HTMLElement | undefined>} */
    const moves = {
      ArrowRight: () => all[at + flip],
      ArrowLeft: () => all[at - flip],
      Home: () => all[0],
      End: () => all[all.length - 1],
      ArrowDown: () => beside(row.nextElementSibling),
      ArrowUp: () => beside(row.previousElementSibling)
    };
    if (!(e.key in moves)) return false;
    const next = moves[e.key]();
    if (next) {
      for (const other of this.#buttons.values()) other.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      this.focus(Number(next.dataset.seat));
    }
    return true;
  }
}
