// @ts-check
/** Shows a plan with the fans' own seat map: geometry and prices as they get them, seats kept back greyed. */
import "../seatmap/element.js";
import { BLOCKED, SeatModel } from "../seatmap/model.js";

/** @param {import("../seatmap/element.js").FrSeatmap} map @param {import("../seatmap/model.js").MapDoc} doc @param {number[]} kept */
export function showPlan(map, doc, kept) {
  const model = new SeatModel(doc);
  for (const seat of kept) model.state[seat] = BLOCKED;
  model.recount();
  map.start(model);
  return model;
}
