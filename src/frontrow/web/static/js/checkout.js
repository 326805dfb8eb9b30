// @ts-check
/** The checkout page: the hold's timer, one press of the button, and the provider's own card form where there is one. */
import { $, say } from "./dom.js";
import "./timer.js";
import "./visit.js";
import { t } from "./words.js";

const form = /** @type {HTMLFormElement} */ ($("#pay")), button = /** @type {HTMLButtonElement} */ ($("#go"));
const timer = /** @type {import("./timer.js").FrTimer} */ (document.querySelector("fr-timer"));
const extend = document.querySelector("#extend");
const price = button.textContent ?? "";

/** @param {boolean} on */
function busy(on) {
  button.disabled = on;
  button.textContent = on ? t("Paying …") : price;
}
// more time is offered when it is needed
timer.addEventListener("low", () => extend?.classList.remove("later"), { once: true });
if (timer.left_s <= 120) extend?.classList.remove("later");
timer.addEventListener("over", () => setTimeout(() => location.reload(), 1200));
addEventListener("pageshow", () => busy(false));
document.querySelector("[aria-invalid=true]")?.dispatchEvent(new Event("focus"));
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();

/** Hand over where the tickets go: the provider's form does not come through our server. What is wrong, or nothing. */
async function kept() {
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  const answer = await fetch(`${form.dataset.back}/contact`, { method: "POST", body }).catch(() => null);
  if (answer?.status === 422) { document.getElementById("email")?.focus(); return t("This does not look like an e-mail address."); }
  return answer?.ok ? "" : t("That did not work. Please try again.");
}

if (form.dataset.stripe) {
  /** @type {any} */
  const maker = /** @type {any} */ (window).Stripe;
  const failed = $("#stripe-err");
  if (!maker) { failed.hidden = false; failed.textContent = t("The payment form could not be loaded. Please reload; your seats are kept."); }
  else {
    const stripe = maker(form.dataset.stripe, { locale: document.documentElement.lang });
    const elements = stripe.elements({ clientSecret: form.dataset.secret, appearance: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe" } });
    elements.create("payment").mount("#stripe");
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      busy(true);
      say(t("Paying …"));
      const wrong = await kept();
      if (wrong) { failed.hidden = false; failed.textContent = wrong; busy(false); return; }
      const back = new URL(form.dataset.back ?? "", location.href).href;
      const { error } = await stripe.confirmPayment({ elements, confirmParams: { return_url: back }, redirect: "if_required" });
      if (!error) { location.assign(back); return; }
      failed.hidden = false;
      failed.textContent = error.message ?? t("That did not work. Please try again.");
      busy(false);
    });
  }
} else form.addEventListener("submit", () => setTimeout(() => { busy(true); say(t("Paying …")); }));
