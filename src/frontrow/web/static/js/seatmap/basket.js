// @ts-check
/** The basket of the seats page: seats and standing places with their prices, one total and one button; and, while one is
 * picking, the seat that would be left alone with the ways out. */
import { $, h } from "../dom.js";
import { money, priced, t, tn } from "../words.js";
import { describe } from "./element.js";
import { seatName, seatsName } from "./names.js";

/** @typedef {import("./model.js").SeatModel} SeatModel @typedef {import("./model.js").SeatInfo} SeatInfo */
/** `pick` takes or gives back one seat, `stand` sets how many standing places of a section there are, `move` exchanges
 * seats for others; `isProposed`: the choice is the page's own. @typedef {{pick: (i: number) => void, stand: (s: number, n: number) => void, move: (from: number[], to: number[]) => void, isProposed: () => boolean}} Acts */

/** What seats cost together, with the fees of each. @param {SeatInfo[]} seats @param {string} currency */
export function priceOf(seats, currency) {
  const sum = (/** @type {(seat: SeatInfo) => number} */ of) => seats.reduce((all, seat) => all + of(seat), 0);
  return priced(
    sum((seat) => seat.tier.price),
    sum((seat) => seat.tier.fee ?? 0),
    currency
  );
}

export class Basket {
  #shown = "";
  #advised = "";
  /** @param {SeatModel} model @param {import("./best.js").BestSeats} best @param {any} page @param {Set<number>} held @param {Acts} acts */
  constructor(model, best, page, held, acts) {
    this.model = model;
    this.best = best;
    this.page = page;
    this.held = held;
    this.acts = acts;
  }

  /** Whether the choice is what is held already. */
  get isHeld() {
    const { mine } = this.model;
    return this.held.size === mine.size && [...mine].every((i) => this.held.has(i));
  }

  show() {
    this.#advise();
    const mine = [...this.model.mine],
      key = mine.join();
    if (key === this.#shown) return;
    this.#shown = key;
    $("#basket").hidden = !mine.length;
    $("#seats").toggleAttribute("data-changed", mine.length > 0 && !this.isHeld);
    $("#nothing").hidden = mine.length > 0 || !$("#soldout").hidden;
    $("#picked").replaceChildren(...this.#lines(mine.map((i) => this.model.seat(i))));
    const fees = this.page.bookingFees;
    $("#total").textContent = money(
      mine.reduce((sum, i) => sum + this.model.seat(i).tier.price + (this.model.seat(i).tier.fee ?? 0), fees),
      this.page.currency
    );
    $("#go").textContent = this.isHeld
      ? t("Continue to checkout")
      : tn("Continue with {n} seat", "Continue with {n} seats", mine.length);
  }

  /** A line for each seat, and one for the standing places of a section. @param {SeatInfo[]} seats */
  #lines(seats) {
    const areas = new Set(seats.map((seat) => seat.section).filter((one) => one.area));
    return [
      ...seats
        .filter((seat) => !seat.section.area)
        .map((seat) => this.#line([seat], describe(seat), () => this.acts.pick(seat.i))),
      ...[...areas].map((one) => {
        const places = seats.filter((seat) => seat.section === one);
        return this.#line(places, seatsName(places), () => this.acts.stand(this.model.section[one.base], 0));
      })
    ];
  }
  /** @param {SeatInfo[]} seats @param {string} described @param {() => void} remove */
  #line(seats, described, remove) {
    return h(
      "li",
      {},
      h("span", { class: "small" }, h("strong", {}, seatsName(seats))),
      h("span", { class: "num" }, priceOf(seats, this.page.currency)),
      h(
        "button",
        { class: "x", type: "button", "aria-label": t("Remove {seat}", { seat: described }), onclick: remove },
        "×"
      )
    );
  }

  /** The seats that this choice would leave alone, while the event's rule applies. It does not apply to a proposal. */
  get alone() {
    const { model } = this,
      taken = model.n - model.sections.reduce((sum, one) => sum + one.free, 0);
    return !this.acts.isProposed() && taken * 100 < this.page.lonely * model.n
      ? this.best.alone(model.mine, this.held)
      : [];
  }

  #advise() {
    const { alone } = this,
      key = `${[...this.model.mine]} ${alone}`;
    if (key === this.#advised) return;
    this.#advised = key;
    $("#alone").hidden = !alone.length;
    $("#alone").replaceChildren(...(alone.length ? this.#waysOut(alone) : []));
  }
  /** @param {number[]} alone */
  #waysOut(alone) {
    const { model, held, acts } = this,
      seats = alone.map((i) => model.seat(i)),
      moved = this.best.moved(alone[0], model.mine, held),
      button = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
        h("button", { class: "btn quiet sm", type: "button", onclick }, text),
      ways = [];
    if (moved) {
      const goal = seatsName(moved.to.map((i) => model.seat(i)));
      ways.push(button(t("Move to {seats}", { seats: goal }), () => acts.move(moved.from, moved.to)));
    }
    if (model.mine.size + alone.length <= this.page.most)
      ways.push(
        button(
          t("Take {seats} too, {price}", { seats: seatsName(seats), price: priceOf(seats, this.page.currency) }),
          () => acts.move([], alone)
        )
      );
    return [
      h("p", {}, t("This would leave {seats} alone.", { seats: seats.map(seatName).join("; ") })),
      h("div", { class: "row" }, ...ways)
    ];
  }
}
