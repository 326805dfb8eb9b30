// @ts-check
/** Stripe's own card form. It is opened with an amount instead of a payment, so that the card stays typed in when the
 * price changes: each price has a payment of its own, which is named only when the button is pressed. */
import { $, say } from "./dom.js";
import { t } from "./words.js";

/** @param {HTMLFormElement} form @param {(on: boolean) => void} busy */
export function openStripeForm(form, busy) {
  /** @type {any} */
  const maker = /** @type {any} */ (window).Stripe;
  const button = /** @type {HTMLButtonElement} */ ($("#go")),
    failed = $("#stripe-err");
  /** @type {any} */
  let stripe = null;
  /** @type {any} */
  let elements = null;

  /** @param {string} text */
  function fail(text) {
    failed.hidden = false;
    failed.textContent = text;
    busy(false);
  }
  const fields = () => new URLSearchParams(/** @type {any} */ (new FormData(form)));
  const amount = () => Number(form.dataset.amount);

  /** The price is another one, or there is one for the first time. */
  function takePrice() {
    if (!amount()) return;
    if (elements) {
      elements.update({ amount: amount() });
      return;
    }
    if (!maker) {
      fail(t("The payment form could not be loaded. Please reload; your seats are held."));
      return;
    }
    stripe = maker(form.dataset.stripe, { locale: document.documentElement.lang });
    elements = stripe.elements({
      mode: "payment",
      amount: amount(),
      currency: form.dataset.currency,
      captureMethod: "manual",
      paymentMethodTypes: ["card"],
      appearance: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe" }
    });
    const element = elements.create("payment");
    element.on("loaderror", () => fail(t("The payment form could not be loaded. Please reload; your seats are held.")));
    element.mount("#stripe");
  }

  /** Hand over where the tickets go: Stripe's form does not come through our server. What is wrong, or nothing. */
  async function keepContact() {
    const answer = await fetch(`${form.dataset.back}/contact`, { method: "POST", body: fields() }).catch(() => null);
    if (answer?.status === 422) {
      document.getElementById("email")?.focus();
      return t("This does not look like an email address.");
    }
    return answer?.ok ? "" : t("That did not work. Please try again.");
  }

  /** Stripe refused a card: let the server look, and say what that means for the seats. Null: load the page again. */
  async function lookAgain() {
    const answer = await fetch(`${form.dataset.back}/look`, { method: "POST", body: fields() }).catch(() => null);
    if (!answer?.ok) return ""; // the server looks by itself soon
    const told = await answer.json();
    return told.open ? told.says : null;
  }

  async function pay() {
    failed.hidden = true;
    say(t("Paying …"));
    const { error: incomplete } = await elements.submit().catch(() => ({ error: {} }));
    if (incomplete) {
      fail(incomplete.message ?? t("That did not work. Please try again."));
      return;
    }
    const wrong = await keepContact();
    if (wrong) {
      fail(wrong);
      return;
    }
    const back = new URL(form.dataset.back ?? "", location.href).href;
    const { error } = await stripe
      .confirmPayment({
        elements,
        clientSecret: form.dataset.secret,
        confirmParams: { return_url: back },
        redirect: "if_required"
      })
      .catch(() => ({ error: {} }));
    const says = error ? await lookAgain() : null;
    if (says === null) location.assign(back);
    else fail([error.message ?? t("That did not work. Please try again."), says].join(" ").trim());
  }

  form.addEventListener("submit", (e) => {
    if (!amount()) return; // free: a plain form
    e.preventDefault();
    if (button.disabled || !elements) return;
    busy(true);
    pay();
  });
  takePrice();
  return { takePrice };
}
