// @ts-check
/** The checkout page: the hold's timer, one press of the button, and the provider's own card form where there is one. */
import { checkCardForm } from "./card-form.js";
import { $, say } from "./dom.js";
import "./timer.js";
import "./visit.js";
import { t } from "./words.js";

const form = /** @type {HTMLFormElement} */ ($("#pay")),
  button = /** @type {HTMLButtonElement} */ ($("#go"));
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
timer.addEventListener("over", () =>
  setTimeout(() => {
    if (!button.disabled) location.reload();
  }, 1200)
);
// the page as it was, from the browser's memory ("back"): look how the booking stands now
addEventListener("pageshow", (e) => {
  if (e.persisted) location.reload();
  else busy(false);
});
document.querySelector("[aria-invalid=true]")?.dispatchEvent(new Event("focus"));
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();

// another ticket type or extra changes the price at once; what was typed beside it comes along
const choice = /** @type {HTMLFormElement | null} */ (document.querySelector("#choice"));
choice?.addEventListener("submit", () => {
  for (const name of ["name", "email"]) {
    const typed = /** @type {HTMLInputElement | null} */ (form.elements.namedItem(name));
    /** @type {HTMLInputElement} */ (choice.elements.namedItem(name)).value = typed?.value ?? "";
  }
  button.disabled = true; // the price is about to change
});
choice?.addEventListener("change", (e) => {
  if (/** @type {Element} */ (e.target).id !== "code") choice.requestSubmit();
});

/** Hand over where the tickets go: the provider's form does not come through our server. What is wrong, or nothing. */
async function kept() {
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  const answer = await fetch(`${form.dataset.back}/contact`, { method: "POST", body }).catch(() => null);
  if (answer?.status === 422) {
    document.getElementById("email")?.focus();
    return t("This does not look like an email address.");
  }
  return answer?.ok ? "" : t("That did not work. Please try again.");
}

/** Stripe's form refused a card: let the server look, and say what that means for the seats. Null: load the page again. */
async function lookAgain() {
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  const answer = await fetch(`${form.dataset.back}/look`, { method: "POST", body }).catch(() => null);
  if (!answer?.ok) return ""; // the server looks by itself soon
  const told = await answer.json();
  return told.open ? told.says : null;
}

if (form.dataset.stripe) {
  /** @type {any} */
  const maker = /** @type {any} */ (window).Stripe;
  const failed = $("#stripe-err");
  /** @param {string} text */
  const fail = (text) => {
    failed.hidden = false;
    failed.textContent = text;
    busy(false);
  };
  if (!maker) fail(t("The payment form could not be loaded. Please reload; your seats are held."));
  else {
    const stripe = maker(form.dataset.stripe, { locale: document.documentElement.lang });
    const elements = stripe.elements({
      clientSecret: form.dataset.secret,
      appearance: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "stripe" }
    });
    const element = elements.create("payment");
    element.on("loaderror", () => fail(t("The payment form could not be loaded. Please reload; your seats are held.")));
    element.mount("#stripe");
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      if (button.disabled) return;
      busy(true);
      failed.hidden = true;
      say(t("Paying …"));
      const wrong = await kept();
      if (wrong) {
        fail(wrong);
        return;
      }
      const back = new URL(form.dataset.back ?? "", location.href).href;
      const { error } = await stripe
        .confirmPayment({ elements, confirmParams: { return_url: back }, redirect: "if_required" })
        .catch(() => ({ error: {} }));
      if (!error) {
        location.assign(back);
        return;
      }
      if (error.type === "validation_error") {
        fail(error.message);
        return;
      }
      const says = await lookAgain();
      if (says === null) {
        location.assign(back);
        return;
      }
      if (says) $("#tries").textContent = says;
      fail(error.message ?? t("That did not work. Please try again."));
    });
  }
} else
  form.addEventListener("submit", (e) => {
    if (form.elements.namedItem("card") && !checkCardForm(form)) {
      e.preventDefault();
      return;
    }
    setTimeout(() => {
      busy(true);
      say(t("Paying …"));
    });
  });
