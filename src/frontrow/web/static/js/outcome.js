// @ts-check
/** A checkout that waits for a bank or a provider: the timer runs, the page looks again by itself, Stripe asks the bank. */
import "./again.js";
import "./timer.js";

document.querySelector("fr-timer")?.addEventListener("over", () => setTimeout(() => location.reload(), 1200));

const ask = /** @type {HTMLButtonElement | null} */ (document.querySelector("#ask-bank"));
ask?.addEventListener("click", async () => {
  /** @type {any} */
  const maker = /** @type {any} */ (window).Stripe;
  ask.disabled = true;
  try {
    const account = ask.dataset.account ? { stripeAccount: ask.dataset.account } : {}; // an organiser's own
    if (maker) await maker(ask.dataset.stripe, account).handleNextAction({ clientSecret: ask.dataset.secret });
  } finally {
    location.assign(ask.dataset.back ?? ""); // the server asks Stripe what came of it
  }
});
