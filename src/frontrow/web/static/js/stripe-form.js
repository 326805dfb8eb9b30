// @ts-check
/** Stripe's own form, for cards and all other methods, with the express buttons (Apple Pay, Google Pay, Link, PayPal)
 * above it where the browser has one. It is opened with an amount instead of a payment, so that the card stays typed in when the
 * price changes: each price has a payment of its own, which is named only when the button is pressed. */
import { $, say } from "./dom.js";
import { t } from "./words.js";

/** @type {Record<string, string>} */
const STRIPES = { przelewy24: "p24", bank_transfer: "customer_balance" };
const WALLETS = ["apple_pay", "google_pay"];

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
  const offered = () => (form.dataset.methods || "card,apple_pay,google_pay").split(",");
  /** Stripe's names of what is offered; the wallets are cards to it. */
  const types = () => [
    ...new Set(
      offered()
        .map((id) => STRIPES[id] ?? id)
        .map((id) => (WALLETS.includes(id) ? "card" : id))
    )
  ];
  /** Money is reserved first by some methods only. Their payments say so themselves, when there are others beside. */
  const capture = () => (types().every((type) => type === "card") ? "manual" : "automatic");

  /** The price is another one, or there is one for the first time. */
  function takePrice() {
    if (!amount()) return;
    if (elements) {
      elements.update({ amount: amount(), captureMethod: capture(), paymentMethodTypes: types() });
      return;
    }
    if (!maker) {
      fail(t("The payment form could not be loaded. Please reload; your seats are held."));
      return;
    }
    const account = form.dataset.account ? { stripeAccount: form.dataset.account } : {}; // an organiser's own
    stripe = maker(form.dataset.stripe, { locale: document.documentElement.lang, ...account });
    elements = stripe.elements({
      mode: "payment",
      amount: amount(),
      currency: form.dataset.currency,
      captureMethod: capture(),
      paymentMethodTypes: types(),
      appearance: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe" }
    });
    const element = elements.create("payment", { wallets: { applePay: "never", googlePay: "never" } });
    element.on("loaderror", () => fail(t("The payment form could not be loaded. Please reload; your seats are held.")));
    element.mount("#stripe");
    openExpress();
  }

  /** The buttons that pay with one touch, before the form. They bring an address for the tickets if none was typed. */
  function openExpress() {
    const place = $("#express"),
      shown = (/** @type {string} */ id) => (offered().includes(id) ? "auto" : "never");
    const express = elements.create("expressCheckout", {
      emailRequired: true,
      paymentMethods: {
        applePay: shown("apple_pay"),
        googlePay: shown("google_pay"),
        link: shown("link"),
        paypal: shown("paypal"),
        klarna: shown("klarna")
      }
    });
    express.on("ready", (/** @type {any} */ { availablePaymentMethods }) => {
      place.hidden = !availablePaymentMethods;
    });
    express.on("confirm", (/** @type {any} */ { billingDetails }) => {
      const email = /** @type {HTMLInputElement | null} */ (document.querySelector("#email"));
      if (email && !email.value.trim()) email.value = billingDetails?.email ?? "";
      if (button.disabled) return;
      busy(true);
      pay();
    });
    express.mount("#express");
  }

  /** Hand over where the tickets go: Stripe's form does not come through our server. What is wrong, or nothing. */
  async function keepContact() {
    const answer = await fetch(`${form.dataset.back}/contact`, { method: "POST", body: fields() }).catch(() => null);
    if (answer?.status === 422) {
      const email = /** @type {HTMLInputElement | null} */ (document.querySelector("#email"));
      email?.focus();
      return email?.value.trim() ? t("This does not look like an email address.") : t("Please enter an email address.");
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
