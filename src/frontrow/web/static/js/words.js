// @ts-check
/** The page's texts in the visitor's language: `t("Held")`. Found in the source by the server, so use literals only. */
const found = document.getElementById("words");
/** A text that depends on a number has one form per plural category of the language. @type {Record<string, string | string[]>} */
const texts = found ? JSON.parse(found.textContent || "{}") : {};
export const lang = document.documentElement.lang || "en";

/** In a right-to-left language a text inside a sentence keeps its own order: a seat "A-1-12", a time. */
const rtl = document.documentElement.dir === "rtl";
/** @param {string | number} value */
const isolate = (value) => (rtl && typeof value === "string" && value ? `\u2068${value}\u2069` : String(value));
/** @param {string} text @param {Record<string, string | number>} values */
const fill = (text, values) =>
  text.replace(/\{(\w+)\}/g, (all, name) => (values[name] === undefined ? all : isolate(values[name])));

/** @param {string} text @param {Record<string, string | number>} [values] */
export const t = (text, values = {}) => fill(String(texts[text] ?? text), values);

const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];
const plurals = new Intl.PluralRules(lang);

/** The form for `n`; `{n}` is the number. @param {string} one @param {string} many @param {number} n @param {Record<string, string | number>} [values] */
export function tn(one, many, n, values = {}) {
  const forms = texts[one] ?? [one, many];
  const category = plurals.select(n);
  const last = forms.length - 1;
  const index = forms.length === CATEGORIES.length ? CATEGORIES.indexOf(category) : category === "one" ? 0 : last;
  return fill(forms[index], { n: number(n), ...values });
}

const numbers = new Intl.NumberFormat(lang, { numberingSystem: "latn" });
/** @param {number} n */
export const number = (n) => numbers.format(n);

/** A price, with the fee beside it if it is not included. @param {number} minor @param {number} fee @param {string} currency */
export const priced = (minor, fee, currency) =>
  fee
    ? t("{price} + {fee} fees", { price: money(minor, currency), fee: money(fee, currency) })
    : money(minor, currency);

/** Making one takes as long as formatting a hundred amounts, so they are kept.
 * @type {Map<string, {whole: Intl.NumberFormat, exact: Intl.NumberFormat, unit: number}>} */
const currencies = new Map();
/** @param {string} currency */
function formatsOf(currency) {
  let found = currencies.get(currency);
  if (!found) {
    const how = /** @type {const} */ ({ style: "currency", currency, numberingSystem: "latn" }),
      exact = new Intl.NumberFormat(lang, how),
      whole = new Intl.NumberFormat(lang, { ...how, maximumFractionDigits: 0 });
    found = { whole, exact, unit: 10 ** (exact.resolvedOptions().maximumFractionDigits ?? 2) };
    currencies.set(currency, found);
  }
  return found;
}

/** @param {number} minor the amount in the smallest unit @param {string} currency */
export function money(minor, currency) {
  const { whole, exact, unit } = formatsOf(currency);
  return (minor % unit ? exact : whole).format(minor / unit);
}
