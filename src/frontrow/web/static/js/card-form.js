// @ts-check
/** The demo's card form: what is wrong is said beside its field before anything is sent. The server has the same rules
 * (`demo_cards.py`); only for an address it is stricter. */
import { h, now_ms } from "./dom.js";
import { t } from "./words.js";

const MAX_YEARS_AHEAD = 50,
  WEST_MS = 12 * 3_600_000; // a month ends last 12 hours west of Greenwich

/** @param {string} number */
const digitsOf = (number) => number.replace(/[ -]/g, "");

/** @param {string} digits */
function luhn(digits) {
  const values = [...digits].reverse().map((digit, position) => Number(digit) * (1 + (position % 2)));
  return values.reduce((sum, value) => sum + (value > 9 ? value - 9 : value), 0) % 10 === 0;
}

/** @param {string} typed */
function errorOfExpiry(typed) {
  const found = /^(0[1-9]|1[0-2]|[1-9](?=[^0-9]))\s*[/.-]?\s*(?:20)?([0-9]{2})$/.exec(typed);
  const now = new Date(now_ms() - WEST_MS),
    year = 2000 + Number(found?.[2]);
  if (!found || year > now.getUTCFullYear() + MAX_YEARS_AHEAD)
    return t("This is not an expiry date. Enter the month and the year, like 12/30.");
  const months = (year - now.getUTCFullYear()) * 12 + Number(found[1]) - (now.getUTCMonth() + 1);
  return months < 0 ? t("This card has expired.") : "";
}

/** What is wrong with a field, or nothing. @type {Record<string, (typed: string, form: HTMLFormElement) => string>} */
const RULES = {
  email: (typed) =>
    !typed.trim()
      ? t("Please fill this in.")
      : /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/.test(typed)
        ? ""
        : t("This does not look like an email address."),
  card: (typed) => {
    const digits = digitsOf(typed);
    return /^[0-9]{12,19}$/.test(digits) && luhn(digits) ? "" : t("This is not a card number.");
  },
  expiry: errorOfExpiry,
  cvc: (typed, form) => {
    const number = digitsOf(/** @type {HTMLInputElement} */ (form.elements.namedItem("card")).value);
    return (/^3[47]/.test(number) ? /^[0-9]{4}$/ : /^[0-9]{3}$/).test(typed)
      ? ""
      : t("This is not a security code. It has 3 digits, or 4 on American Express.");
  }
};

/** Say beside a field what is wrong with it; an empty text takes that back. @param {HTMLInputElement} field @param {string} text */
function mark(field, text) {
  const id = `${field.id}-err`,
    others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((one) => one !== id);
  document.getElementById(id)?.remove();
  if (text) field.after(h("p", { class: "field-err", id }, text));
  field.setAttribute("aria-describedby", [...others, text && id].join(" ").trim());
  field.setAttribute("aria-invalid", String(Boolean(text)));
}

/** Whether the form can be sent. If not, its errors are shown and the first one has the focus. @param {HTMLFormElement} form */
export function checkCardForm(form) {
  /** @type {HTMLInputElement[]} */
  const wrong = [];
  for (const [name, rule] of Object.entries(RULES)) {
    const field = /** @type {HTMLInputElement | null} */ (form.elements.namedItem(name));
    if (!field) continue; // a fan who signed in is not asked for an address
    const typed = field.value.trim(),
      text = typed ? rule(typed, form) : t("Please fill this in.");
    mark(field, text);
    if (text) wrong.push(field);
  }
  wrong[0]?.focus();
  return !wrong.length;
}
