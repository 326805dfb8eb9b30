// @ts-check
/** The box office: seats picked on the map go into the field, and the server says what they cost with every fee. */
import { $, ask, say } from "../dom.js";
import { describe } from "../seatmap/element.js";
import { BLOCKED, FREE } from "../seatmap/model.js";
import { money } from "../words.js";
import "./once.js";
import { mapOfPage, showSeating } from "./plan.js";

const map = mapOfPage(),
  field = /** @type {HTMLInputElement} */ ($("#seats")),
  most = Number(field.dataset.most);
const seating = await showSeating(map);
if (seating) {
  const { model } = seating;
  /** @type {Map<string, number>} */
  const index = new Map();
  for (let i = 0; i < model.n; i++) index.set(model.seat(i).id, i);
  let asked = 0;
  const total = async () => {
    const seats = [...model.mine].map((i) => model.seat(i)),
      mine = ++asked;
    if (/** @type {HTMLInputElement} */ ($("#sale [name=paid_by]:checked")).value === "free" || !seats.length) {
      $("#total").textContent = seats.length ? money(0, seats[0].tier.cur) : "–";
      return;
    }
    const ids = seats.map((seat) => seat.id).join(" ");
    const { ok, body } = await ask(`${location.pathname}/price.json?seats=${encodeURIComponent(ids)}`);
    if (mine === asked) $("#total").textContent = ok ? body.total : "–"; // an answer that was overtaken is not shown
  };
  const read = () => {
    const was = [...model.mine];
    model.mine.clear();
    for (const id of field.value.split(/[\s,]+/)) {
      const i = index.get(id);
      if (i !== undefined && model.mine.size < most) model.mine.add(i);
    }
    map.view.touch([...was, ...model.mine]);
    total();
  };
  /** @param {number} i */
  const pick = (i) => {
    const open = model.state[i] === FREE || model.state[i] === BLOCKED; // withheld seats are sold here
    if (model.mine.has(i)) model.mine.delete(i);
    else if (open && model.mine.size < most) model.mine.add(i);
    else {
      say(describe(model.seat(i)));
      return;
    }
    field.value = [...model.mine].map((seat) => model.seat(seat).id).join(" ");
    map.view.touch([i]);
    total();
    say(describe(model.seat(i)));
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
  field.addEventListener("input", read);
  $("#sale").addEventListener("change", total);
  read();
}
