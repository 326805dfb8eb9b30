// @ts-check
/** The preview: the map of the event, and a frame whose links and buttons lead nowhere. */
import { $, ask } from "../dom.js";
import "./once.js";
import { showPlan } from "./plan.js";

const map = /** @type {import("../seatmap/element.js").FrSeatmap} */ ($("fr-seatmap"));
const frame = /** @type {HTMLIFrameElement} */ ($("iframe.preview"));
/** @param {Event} e */
const stop = (e) => {
  if (/** @type {Element} */ (e.target).closest("a, button")) e.preventDefault();
};
const still = () => {
  for (const kind of ["click", "submit"]) frame.contentDocument?.addEventListener(kind, stop, true);
};
frame.addEventListener("load", still);
still();
const answer = await ask(map.dataset.map ?? "");
if (answer.ok) showPlan(map, answer.body.map, answer.body.kept);
