// @ts-check
/** Forms of the event wizard: the first mistake gets the keyboard, and there is room for more fees. */
import "./once.js";
import "./picture.js";
import "./zone.js";

/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();

const more = document.querySelector("#more-fees");
const spare = () => /** @type {HTMLElement | null} */ (document.querySelector(".feeline.spare"));
more?.addEventListener("click", () => {
  const next = spare();
  next?.classList.remove("spare");
  next?.querySelector("input")?.focus();
  if (!spare()) /** @type {HTMLElement} */ (more).hidden = true;
});
if (more && !spare()) /** @type {HTMLElement} */ (more).hidden = true;
export {};
