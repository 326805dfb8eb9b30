// @ts-check
/** Tickets at the gate: a rotating code is fetched again before it expires, the screen stays on, and all of it can show
 * one ticket at a time. */
import "./share.js";

const EVERY_MS = 10_000;
for (const picture of /** @type {NodeListOf<HTMLImageElement>} */ (document.querySelectorAll("img[data-rotating]"))) {
  const src = picture.src;
  setInterval(() => {
    if (!document.hidden) picture.src = `${src}?at=${Date.now()}`;
  }, EVERY_MS);
}
const awake = () => {
  if (!document.hidden) navigator.wakeLock?.request("screen").catch(() => {});
};
if (window.innerWidth < 700) {
  document.addEventListener("visibilitychange", awake);
  awake();
}

// The address says whether the tickets have all of the screen (`#gate`), so Back closes them. What lies behind rests.
const gate = document.getElementById("gate"),
  leave = /** @type {HTMLAnchorElement | null} */ (document.querySelector(".leave"));
if (gate && leave) {
  /** Everything on the page but the tickets and their button: the siblings of each of their ancestors. */
  const others = () => {
    const found = [];
    for (let one = /** @type {Element} */ (gate); one !== document.body && one.parentElement; one = one.parentElement)
      for (const other of one.parentElement.children) if (other !== one && other !== leave) found.push(other);
    return found;
  };
  const follow = () => {
    const open = location.hash === "#gate";
    for (const other of others()) other.toggleAttribute("inert", open);
    if (open) leave.focus();
  };
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && location.hash === "#gate") leave.click();
  });
  follow();
}
export {};
