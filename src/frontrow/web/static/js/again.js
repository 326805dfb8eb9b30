// @ts-check
/** A page that looks again by itself after `data-again-s` seconds; a hidden tab waits until it is looked at. With `data-back`
 * it is the answer to a form, and goes back to it: what was typed is still there. */
const box = /** @type {HTMLElement | null} */ (document.querySelector("[data-again-s]"));
const wait_s = Number(box?.dataset.againS ?? 0);
const PATIENCE_S = 30; // a reload must not cancel a click whose next page is slow
let timer = 0;
const again = () => {
  if (document.hidden) document.addEventListener("visibilitychange", again, { once: true });
  else if (box?.hasAttribute("data-back")) history.back();
  else location.reload();
};
/** @param {number} seconds */
const look_in = (seconds) => {
  clearTimeout(timer);
  timer = window.setTimeout(again, seconds * 1000);
};
if (wait_s) {
  look_in(wait_s * (0.9 + Math.random() * 0.2));
  for (const kind of ["click", "submit"])
    document.addEventListener(kind, () => look_in(Math.max(wait_s, PATIENCE_S)), true);
}
export {};
