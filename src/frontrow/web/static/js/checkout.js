// @ts-check
/** The checkout page: the hold's timer, a price that changes in place, one press of the button, and the provider's own
 * card form where there is one. */
import { checkCardForm } from "./card-form.js";
import { followChoice } from "./checkout-choice.js";
import { $, say } from "./dom.js";
import { openDropIn } from "./drop-in.js";
import { fetchPage, takeOver } from "./live-page.js";
import { openStripeForm } from "./stripe-form.js";
import "./timer.js";
import { t } from "./words.js";

const form = /** @type {HTMLFormElement} */ ($("#pay")),
  button = /** @type {HTMLButtonElement} */ ($("#go"));
const timer = /** @type {import("./timer.js").FrTimer} */ (document.querySelector("fr-timer"));
const choice = /** @type {HTMLFormElement | null} */ (document.querySelector("#choice"));
let price = button.textContent ?? "";

/** @param {boolean} on @param {string} why */
function wait(on, why) {
  button.disabled = on;
  button.textContent = on ? why : price;
}
/** While a payment is under way nothing else is chosen. @param {boolean} on */
function busy(on) {
  wait(on, t("Paying …"));
  if (choice) choice.inert = on;
}
/** More time is offered when it is needed. */
function offerTime() {
  if (timer.left_s <= 120) document.querySelector("#extend")?.classList.remove("later");
}
timer.addEventListener("low", offerTime);
offerTime();
timer.addEventListener("over", () =>
  setTimeout(() => {
    if (!button.disabled) location.reload();
  }, 1200)
);
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();

const adyen = form.dataset.adyen && "AdyenWeb" in window; // else its page is a press of the button away
const own = form.dataset.stripe ? openStripeForm(form, busy) : adyen ? openDropIn(form, busy) : null;

/** Take over what a newer version of this page says: price, time, and what the button does. @param {Document} page */
function show(page) {
  const fresh = /** @type {HTMLFormElement} */ (page.querySelector("#pay"));
  for (const part of ["#price", "#more-time", "#payment:not([hidden]) #methods"]) {
    const found = page.querySelector(part),
      old = document.getElementById(found?.id ?? "");
    if (found && old) takeOver(old, found);
  }
  const ways = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("#methods [type=radio]"));
  if (ways.length && ![...ways].some((one) => one.checked)) ways[0].checked = true; // the chosen one is not for this price
  for (const name of ["seats", "amount"]) {
    const field = /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
    field.value = /** @type {HTMLInputElement} */ (fresh.elements.namedItem(name)).value;
  }
  for (const part of ["#payment", "#once"])
    $(part).hidden = Boolean(/** @type {HTMLElement} */ (page.querySelector(part)).hidden);
  Object.assign(form.dataset, fresh.dataset);
  price = $("#go", page).textContent ?? "";
  if (!button.disabled) button.textContent = price;
  const until = page.querySelector("fr-timer")?.getAttribute("until");
  if (until && until !== timer.getAttribute("until")) timer.restart(until);
  offerTime();
  own?.takePrice();
}

if (choice) followChoice(choice, { form, show, busy: (on) => wait(on, t("Updating the price …")) });

/** Look how the booking stands now, without losing what was typed. @param {string} path @param {URLSearchParams} [sent] */
async function look(path, sent) {
  const answer = await fetchPage(path, sent);
  if (!answer) return;
  if (answer.page.querySelector("#pay")) show(answer.page);
  else location.assign(answer.url);
}
// the page as it was, from the browser's memory ("back")
addEventListener("pageshow", (e) => {
  busy(false);
  if (e.persisted) look(location.pathname);
});
$("#more-time").addEventListener("submit", (e) => {
  const more = /** @type {HTMLFormElement} */ (e.target);
  e.preventDefault();
  look(more.action, new URLSearchParams(/** @type {any} */ (new FormData(more))));
});

if (!own)
  form.addEventListener("submit", (e) => {
    const byCard = (new FormData(form).get("method") ?? "card") === "card";
    if (byCard && form.elements.namedItem("card") && !$("#payment").hidden && !checkCardForm(form)) {
      e.preventDefault();
      return;
    }
    setTimeout(() => {
      busy(true);
      say(t("Paying …"));
    });
  });
