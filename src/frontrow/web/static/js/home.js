// @ts-check
/** Search that follows the typing: shows that cannot match go at once, the server's answer takes over a moment later. The
 * form works without it. The picture of the show that is opened grows into its page. */
import { $, say } from "./dom.js";
import { fetchPage } from "./live-page.js";
import { tn } from "./words.js";

const PAUSE_MS = 150;
const form = /** @type {HTMLFormElement} */ ($("#search"));
let waiting = 0;
let latest = 0;

/** The form as an address; empty fields are left out. */
function wanted() {
  const params = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (typeof value === "string" && value) params.append(name, value);
  const price = params.get("price");
  if (!price) params.delete("currency");
  return params.size ? `/?${params}` : "/";
}

/** @param {string} text */
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** Hide what the words in the field cannot mean; the server knows more and answers soon. */
function hideOthers() {
  const words = plain(/** @type {HTMLInputElement} */ ($("#q")).value).split(/\s+/);
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#found .events > li"))) {
    const text = plain(one.textContent ?? "");
    one.hidden = !words.every((word) => text.includes(word));
  }
}

async function search() {
  const path = wanted(),
    mine = ++latest,
    answer = await fetchPage(path);
  if (mine !== latest || !answer) return; // typed on, or no answer: what is shown stays, and the button still works
  const found = answer.page.getElementById("found");
  if (!found) return;
  $("#found").replaceWith(document.importNode(found, true));
  history.replaceState(null, "", path);
  const count = Number(found.dataset.count);
  say(tn("{n} event found", "{n} events found", count));
}

form.addEventListener("input", (event) => {
  if (/** @type {HTMLElement} */ (event.target).id === "q") hideOthers();
  clearTimeout(waiting);
  waiting = window.setTimeout(search, PAUSE_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  search();
});
export {};
