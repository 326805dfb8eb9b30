// @ts-check
/** A checkout that waits for a bank or a provider: the timer runs, and the page looks again by itself. */
import "./again.js";
import "./timer.js";
import "./visit.js";

document.querySelector("fr-timer")?.addEventListener("over", () => setTimeout(() => location.reload(), 1200));
