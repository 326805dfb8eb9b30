// @ts-check
/** Tickets at the gate: a rotating code is fetched again before it expires, and the screen stays on. */
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
export {};
