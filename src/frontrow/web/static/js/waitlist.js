// @ts-check
/** The waitlist looks for offers by itself while it is looked at. */
import "./push.js";
import "./timer.js";
const EVERY_MS = 20_000;
setInterval(() => {
  if (!document.hidden && !document.querySelector("fr-timer")) location.reload();
}, EVERY_MS);
document.querySelector("fr-timer")?.addEventListener("over", () => location.reload());
export {};
