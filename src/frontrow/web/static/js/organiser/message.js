// @ts-check
/** How far a message to buyers is: asks every two seconds while it is being sent, then shows the page anew. */
import { $, ask } from "../dom.js";
import { number, t } from "../words.js";

const EVERY_MS = 2000;
const line = /** @type {HTMLElement} */ ($("#progress"));
const bar = /** @type {HTMLProgressElement} */ ($("progress"));

const look = async () => {
  const answer = await ask(line.dataset.url ?? "");
  if (!answer.ok) return;
  const { state, sent, failed, skipped, recipients } = answer.body;
  if (state === "sent") return location.reload();
  line.textContent = t("{sent} of {all} sent, {failed} failed", {
    sent: number(sent),
    all: number(recipients),
    failed: number(failed)
  });
  bar.max = Math.max(1, recipients);
  bar.value = sent + failed + skipped;
};
setInterval(look, EVERY_MS);
