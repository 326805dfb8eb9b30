// @ts-check
/** Other seats for a booking, picked on the map: free ones at the same price, as many as are left. */
import { $, h, say } from "../dom.js";
import { describe } from "../seatmap/element.js";
import { BLOCKED, FREE, HELD } from "../seatmap/model.js";
import { seatsName } from "../seatmap/names.js";
import { t } from "../words.js";
import "./dialogs.js";
import { mapOfPage, showSeating } from "./plan.js";

const map = mapOfPage(),
  wanted = Number(map.dataset.count),
  tiers = new Set(JSON.parse(map.dataset.tiers ?? "[]")),
  own = new Set(JSON.parse(map.dataset.own ?? "[]")),
  /** Seats that the server offers; also those that were returned, which are not free for fans. */
  offered = new Set(
    [...document.querySelectorAll("input[name=to]")].map((one) => /** @type {HTMLInputElement} */ (one).value)
  );
const seating = await showSeating(map);
if (seating) {
  const { model } = seating;
  for (let i = 0; i < model.n; i++) {
    if (model.state[i] === FREE && !tiers.has(model.doc.tiers[model.tier[i]].key)) model.state[i] = BLOCKED;
    else if (own.has(model.seat(i).id)) model.state[i] = HELD;
    else if (offered.has(model.seat(i).id)) model.state[i] = FREE;
  }
  model.recount();
  map.view.invalidate();
  map.view.request();

  const show = () => {
    const seats = [...model.mine].map((i) => model.seat(i).id);
    $("#picked").textContent = seats.length ? seatsName([...model.mine].map((i) => model.seat(i))) : "–";
    $("#to").replaceChildren(...seats.map((id) => h("input", { type: "hidden", name: "to", value: id })));
    /** @type {HTMLButtonElement} */ ($("#move")).disabled = seats.length !== wanted;
  };
  /** @param {number} i */
  const pick = (i) => {
    if (model.mine.has(i)) model.mine.delete(i);
    else if (model.state[i] !== FREE) {
      say(describe(model.seat(i)));
      return;
    } else model.mine.add(i);
    const changed = [i];
    while (model.mine.size > wanted) {
      const first = /** @type {number} */ (model.mine.values().next().value); // the oldest choice makes room
      model.mine.delete(first);
      changed.push(first);
    }
    map.update(changed);
    say(model.mine.has(i) ? describe(model.seat(i)) : t("Removed."));
    show();
  };
  map.addEventListener("seat-pick", (e) => pick(/** @type {CustomEvent} */ (e).detail));
  map.addEventListener("section-pick", (e) => {
    const one = model.sections[/** @type {CustomEvent} */ (e).detail];
    if (!one.area) return;
    for (let i = one.base; i < one.base + one.n; i++)
      if (model.state[i] === FREE && !model.mine.has(i)) {
        pick(i);
        return;
      }
  });
  show();
}
