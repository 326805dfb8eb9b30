// @ts-check
/** A page that looks again by itself after `data-again-s` seconds; a hidden tab waits until it is looked at. */
const wait_s = Number(
  /** @type {HTMLElement | null} */ (document.querySelector("[data-again-s]"))?.dataset.againS ?? 0
);
const again = () => {
  if (document.hidden) document.addEventListener("visibilitychange", again, { once: true });
  else location.reload();
};
if (wait_s) setTimeout(again, wait_s * 1000 * (0.9 + Math.random() * 0.2));
export {};
