// @ts-check
/** Renews a room's figures while somebody looks; loads the page again when the phase has changed. */
import { $ } from "../dom.js";

const EVERY_MS = 2_000,
  box = $("#now"),
  phase = $("#phase"),
  number = new Intl.NumberFormat(document.documentElement.lang + "-u-nu-latn");

async function renew() {
  const answer = await fetch(box.dataset.url ?? "", { cache: "no-store" });
  if (!answer.ok || answer.redirected) return;
  const now = await answer.json();
  for (const one of box.querySelectorAll("[data-now]")) {
    const field = /** @type {HTMLElement} */ (one);
    field.textContent = number.format(now[field.dataset.now ?? ""]);
  }
  const typing = document.activeElement?.matches("input, textarea");
  if (now.phase !== phase.dataset.phase && !typing) location.assign(location.pathname);
}
setInterval(() => {
  if (!document.hidden) renew().catch(() => {}); // the next turn tries again
}, EVERY_MS);
