// @ts-check
/** A one-time link's secret stands behind `#`, which no server sees: put it into the form, so that nobody has to. */
import { $ } from "../dom.js";

function take() {
  const secret = location.hash.slice(1),
    link = /** @type {HTMLInputElement} */ ($("#link"));
  if (secret) link.value = secret;
  $("#linkbox").classList.toggle("without-js", link.value !== "" && link.getAttribute("aria-invalid") !== "true");
}
addEventListener("hashchange", take);
take();
