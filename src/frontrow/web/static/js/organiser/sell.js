// @ts-check
/** The box office, and the walk of a draft as a fan: seats picked on the map go into the field, each gets its ticket type, and the server says what they
 * cost with every fee. */
import { $, ask, say } from "../dom.js";
import { describe } from "../seatmap/element.js";
import { BLOCKED, FREE } from "../seatmap/model.js";
import { seatName } from "../seatmap/names.js";
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
  const form = /** @type {HTMLFormElement} */ ($("#sale")),
    types = document.querySelector("#types");
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  /** One choice of a ticket type per picked seat; what was chosen stays while the seat is picked. */
  const showTypes = () => {
    if (!(types instanceof HTMLElement)) return;
    const chosen = JSON.parse(types.dataset.chosen || "{}"),
      ids = [...model.mine].map((i) => model.seat(i).id);
    for (const [id, row] of rows)
      if (!ids.includes(id)) {
        row.remove();
        rows.delete(id);
      }
    for (const id of ids)
      if (!rows.has(id)) {
        const pattern = /** @type {HTMLTemplateElement} */ ($("template", types)),
          copy = /** @type {DocumentFragment} */ (pattern.content.cloneNode(true)),
          select = /** @type {HTMLSelectElement} */ ($("select", copy));
        $("span", copy).textContent = seatName(model.seat(index.get(id) ?? 0));
        select.name = `type-${id}`;
        if (chosen[id]) select.value = chosen[id];
        rows.set(id, $("label", copy));
        $(".fields", types).append(copy);
      }
    types.hidden = !ids.length;
  };
  const total = async () => {
    const seats = [...model.mine].map((i) => model.seat(i).id),
      mine = ++asked;
    showTypes();
    if (!seats.length) {
      $("#total").textContent = "–";
      return;
    }
    const wish = new URLSearchParams({ seats: seats.join(" ") });
    for (const [name, value] of new FormData(form))
      if (/^(type-|add-|code$|paid_by$)/.test(name) && typeof value === "string") wish.set(name, value);
    const { ok, body } = await ask(`${location.pathname}/price.json?${wish}`);
    if (mine === asked) $("#total").textContent = ok ? body.problem || body.total : "–"; // an overtaken answer is not shown
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
    const open = model.state[i] === FREE || (model.state[i] === BLOCKED && field.dataset.fans === undefined); // withheld seats are sold here
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
  form.addEventListener("change", total);
  read();
}
