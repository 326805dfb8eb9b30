// @ts-check
/** Ticket types and extras: spare lines come one at a time, and the matrix follows names and percentages as they are typed. */
import { $ } from "../dom.js";
import { t } from "../words.js";
import "./once.js";
const WHOLE = 100;

/** @param {string} id @returns {HTMLInputElement | null} */
const field = (id) => document.querySelector(`#${id}`);

/** A group's spare lines, and those of the matrix with the same number. @param {HTMLElement} section */
function lines(section) {
  const button = section.querySelector("[data-another]");
  const spare = () => /** @type {HTMLElement[]} */ ([...section.querySelectorAll("[role=group][data-spare]")]);
  /** @param {HTMLElement} one @param {boolean} hidden */
  const set = (one, hidden) => {
    one.hidden = hidden;
    const row = one.dataset.line && section.querySelector(`tr[data-line="${one.dataset.line}"]`);
    if (row) /** @type {HTMLElement} */ (row).hidden = hidden;
  };
  if (!button) return;
  for (const one of spare()) set(one, !one.querySelector("[aria-invalid]"));
  const left = () => spare().filter((one) => one.hidden);
  /** @type {HTMLElement} */ (button).hidden = !left().length;
  button.addEventListener("click", () => {
    const [next] = left();
    if (!next) return;
    set(next, false);
    /** @type {HTMLElement} */ (button).hidden = !left().length;
    next.querySelector("input")?.focus();
  });
}

const matrix = /** @type {HTMLTableElement | null} */ (document.querySelector(".matrix"));
const digits = matrix
  ? (new Intl.NumberFormat("en", { style: "currency", currency: matrix.dataset.currency }).resolvedOptions()
      .maximumFractionDigits ?? 2)
  : 2;

/** The amounts that follow from a percentage, as the server writes them. @param {string} n */
function shares(n) {
  const given = field(`tpercent${n}`)?.value.trim().replace(",", ".") ?? "",
    percent = given === "" ? WHOLE : Number(given);
  for (const cell of /** @type {NodeListOf<HTMLInputElement>} */ (
    matrix?.querySelectorAll(`tr[data-line="${n}"] input[data-minor]`) ?? []
  ))
    cell.placeholder =
      percent >= 0 ? (Math.round((Number(cell.dataset.minor) * percent) / WHOLE) / 10 ** digits).toFixed(digits) : "";
}

/** @param {string} n */
function named(n) {
  const name = field(`tname${n}`)?.value.trim() || t("Ticket type {n}", { n: Number(n) + 1 });
  $(`[data-name="${n}"]`).textContent = name;
  const tiers = [...(matrix?.tHead?.rows[0].cells ?? [])].slice(1).map((cell) => cell.textContent?.trim() ?? "");
  matrix
    ?.querySelectorAll(`tr[data-line="${n}"] input`)
    .forEach((cell, at) => cell.setAttribute("aria-label", t("{type}, {tier}", { type: name, tier: tiers[at] })));
}

for (const section of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("section:has([data-another])")))
  lines(section);
$("main form").addEventListener("input", (e) => {
  const [, what, n] = /^(tname|tpercent)(\d+)$/.exec(/** @type {HTMLElement} */ (e.target).id) ?? [];
  if (!n || !matrix) return;
  if (what === "tname") named(n);
  else shares(n);
});
