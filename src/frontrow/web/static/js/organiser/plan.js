// @ts-check
/** Shows a plan with the fans' own seat map: geometry and prices as they get them, seats kept back greyed. */
import { $, ask, h } from "../dom.js";
import "../seatmap/element.js";
import { BLOCKED, SOLD, SeatModel } from "../seatmap/model.js";

/** @param {import("../seatmap/element.js").FrSeatmap} map @param {import("../seatmap/model.js").MapDoc} doc @param {number[]} kept @param {number[]} [taken] */
export function showPlan(map, doc, kept, taken = []) {
  const model = new SeatModel(doc);
  for (const seat of kept) model.state[seat] = BLOCKED;
  for (const seat of taken) model.state[seat] = SOLD;
  model.recount();
  map.start(model);
  return model;
}

/** The map of an event with its seats as they are now; null when it cannot be loaded.
 * @param {import("../seatmap/element.js").FrSeatmap} map */
export async function showSeating(map) {
  const answer = await ask(map.dataset.map ?? "");
  if (!answer.ok) return null;
  const model = showPlan(map, answer.body.map, answer.body.kept, answer.body.taken);
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  map.after(tip);
  map.addEventListener("tip", (e) => {
    const about = /** @type {CustomEvent} */ (e).detail;
    tip.hidden = !about;
    if (!about) return;
    tip.replaceChildren(h("b", {}, about.title), about.text);
    tip.style.left = `${Math.min(map.view.w - 110, Math.max(110, about.x))}px`;
    tip.style.top = `${Math.max(74, about.y)}px`;
  });
  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => {
      const how = /** @type {HTMLElement} */ (button).dataset.zoom;
      if (how === "fit") map.fit();
      else map.zoom(how === "in" ? 1.6 : 1 / 1.6);
    });
  return { model, kept: /** @type {number[]} */ (answer.body.kept) };
}

/** The map of this page. @returns {import("../seatmap/element.js").FrSeatmap} */
export const mapOfPage = () => $("fr-seatmap");
