// @ts-check
/** Seats that are not sold, picked on the map: seat by seat, by row or by section. The text beside the map says the same. */
import { $, say } from "../dom.js";
import { describe } from "../seatmap/element.js";
import { FREE, SOLD } from "../seatmap/model.js";
import { tn } from "../words.js";
import { mapOfPage, showSeating } from "./plan.js";
import { rangesOf, seatsOf } from "./ranges.js";
import "./wizard.js";

const map = mapOfPage(),
  text = /** @type {HTMLTextAreaElement} */ ($("#withheld"));
const seating = await showSeating(map);
if (seating) {
  const { model } = seating;
  /** Lines that name no seats of this plan; the server says what is wrong with them. @type {string[]} */
  let odd = [];

  const count = () => tn("{n} seat is withheld.", "{n} seats are withheld.", model.mine.size);
  const show = (/** @type {number[]} */ changed) => {
    model.recount();
    map.update(changed);
    $("#withheld-count").textContent = count();
  };
  const read = () => {
    const found = seatsOf(model, text.value),
      changed = [...model.mine, ...found.seats];
    odd = found.odd;
    model.mine.clear();
    for (const i of changed) if (model.state[i] !== SOLD) model.state[i] = FREE;
    for (const i of found.seats) if (model.state[i] !== SOLD) model.mine.add(i);
    show(changed);
  };
  for (const i of seating.kept) model.mine.add(i);
  read();
  text.addEventListener("input", read);

  /** What a click on this seat means. @param {number} i @returns {number[]} */
  const meant = (i) => {
    const how = /** @type {HTMLInputElement | null} */ (document.querySelector("input[name=pick]:checked"))?.value,
      section = model.sections[model.section[i]],
      [from, to] =
        how === "section"
          ? [section.base, section.base + section.n]
          : how === "row" || section.area
            ? model.rowEnds(section, model.rowOf(i))
            : [i, i + 1];
    return Array.from({ length: to - from }, (_, k) => from + k).filter((seat) => model.state[seat] !== SOLD);
  };
  /** @param {number} i */
  const pick = (i) => {
    if (text.disabled || text.closest("fieldset:disabled")) return;
    const seats = meant(i);
    if (!seats.length) {
      say(describe(model.seat(i)));
      return;
    }
    const add = !seats.every((seat) => model.mine.has(seat));
    for (const seat of seats)
      if (add) model.mine.add(seat);
      else model.mine.delete(seat);
    text.value = [...rangesOf(model, model.mine), ...odd].join("\n");
    show(seats);
    say(count());
  };
  map.addEventListener("seat-pick", (e) => pick(/** @type {CustomEvent} */ (e).detail));
  map.addEventListener("section-pick", (e) => {
    const one = model.sections[/** @type {CustomEvent} */ (e).detail];
    if (one.area) pick(one.base);
  });
}
