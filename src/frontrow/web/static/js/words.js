// @ts-check
/** The page's texts in the visitor's language: `t("Held")`. Found in the source by the server, so use literals only. */
const found = document.getElementById("words");
/** @type {Record<string, string>} */
const texts = found ? JSON.parse(found.textContent || "{}") : {};
export const lang = document.documentElement.lang || "en";

/** @param {string} text @param {Record<string, string | number>} [values] */
export const t = (text, values) => (texts[text] ?? text).replace(/\{(\w+)\}/g, (all, name) => String(values?.[name] ?? all));

const numbers = new Intl.NumberFormat(lang, { numberingSystem: "latn" });
/** @param {number} n */
export const number = (n) => numbers.format(n);

/** @param {number} minor the amount in the smallest unit @param {string} currency */
export function money(minor, currency) {
  const one = new Intl.NumberFormat(lang, { style: "currency", currency, numberingSystem: "latn" });
  const digits = one.resolvedOptions().maximumFractionDigits ?? 2, amount = minor / 10 ** digits;
  return Number.isInteger(amount) ? new Intl.NumberFormat(lang, { style: "currency", currency, numberingSystem: "latn", maximumFractionDigits: 0 }).format(amount) : one.format(amount);
}
