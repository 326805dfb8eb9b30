// @ts-check
/** The colour field and the picker beside it show the same colour. */
import { $ } from "../dom.js";

const pick = /** @type {HTMLInputElement} */ ($("#pick")),
  colour = /** @type {HTMLInputElement} */ ($("#colour"));
pick.addEventListener("input", () => {
  colour.value = pick.value;
});
colour.addEventListener("input", () => {
  if (/^#[0-9a-f]{6}$/i.test(colour.value)) pick.value = colour.value;
});
