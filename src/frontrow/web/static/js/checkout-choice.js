// @ts-check
/** Ticket types, add-ons and a code at the checkout change the price in place. One change is sent at a time and the last
 * one counts. What was typed stays, also if the network does not answer: then the page says so and tries again. */
import { $, say } from "./dom.js";
import { fetchPage, takeOver } from "./live-page.js";
import { t } from "./words.js";

const RETRY_MS = [2_000, 5_000, 10_000];

/** @typedef {{form: HTMLFormElement, busy: (on: boolean) => void, show: (page: Document) => void}} Checkout */

/** @param {HTMLFormElement} choice @param {Checkout} checkout */
export function followChoice(choice, { form, busy, show }) {
  const unsaved = $("#unsaved");
  let sending = false,
    changed = false,
    failures = 0,
    later = 0,
    refused = "";

  /** What is to be sent. A code that was refused is not tried again, so that it counts as one wrong try. */
  function read() {
    const fields = new URLSearchParams(/** @type {any} */ (new FormData(choice)));
    for (const name of ["name", "email"]) {
      const typed = /** @type {HTMLInputElement | null} */ (form.elements.namedItem(name));
      fields.set(name, typed?.value ?? "");
    }
    const code = /** @type {HTMLInputElement | null} */ (choice.querySelector("#code"));
    const again = code !== null && refused !== "" && code.value.trim() === refused;
    if (again) fields.set("code", code.dataset.used ?? "");
    return { fields, again };
  }

  /** Fields that nobody touched since they were sent show what the server has. @param {Document} page @param {URLSearchParams} sent */
  function takeFields(page, sent) {
    for (const field of choice.querySelectorAll("select, input:not([type=hidden])")) {
      const old = /** @type {HTMLInputElement} */ (field),
        fresh = /** @type {HTMLInputElement | null} */ (page.getElementById(old.id));
      if (!fresh || old.value === fresh.value || old.value !== sent.get(old.name)) continue;
      if (old.type !== "text" || old !== document.activeElement) old.value = fresh.value;
    }
  }

  /** @param {{page: Document, url: string}} answer @param {{fields: URLSearchParams, again: boolean}} sent */
  function learn({ page, url }, { fields, again }) {
    const fresh = page.querySelector("#choice");
    if (!fresh || !page.querySelector("#pay")) {
      location.assign(url); // sold, ended or over: the page that came says so
      return;
    }
    const box = choice.querySelector("#code-box");
    if (again && box) fresh.querySelector("#code-box")?.replaceWith(box.cloneNode(true));
    else refused = fresh.querySelector("#code[aria-invalid=true]") ? (fields.get("code") ?? "").trim() : "";
    takeOver(choice, fresh);
    if (!again) takeFields(page, fields);
    show(page);
    if (!choice.querySelector("[role=alert]"))
      say(t("The new total is {price}.", { price: $("#price strong").textContent ?? "" }));
  }

  async function send() {
    changed = true;
    if (sending) return;
    clearTimeout(later);
    sending = true;
    busy(true);
    while (changed) {
      changed = false;
      const sent = read(),
        answer = await fetchPage(choice.action, sent.fields);
      if (changed) continue; // something newer is sent next, and its answer counts
      const reached = answer !== null && !answer.page.querySelector("[data-kind=retrying]");
      failures = reached ? 0 : failures + 1;
      if (reached) learn(answer, sent);
    }
    sending = false;
    unsaved.hidden = !failures;
    busy(false);
    if (failures && failures <= RETRY_MS.length) later = window.setTimeout(send, RETRY_MS[failures - 1]);
  }

  choice.addEventListener("submit", (e) => {
    e.preventDefault();
    send();
  });
  choice.addEventListener("change", send);
  choice.addEventListener("click", (e) => {
    const pressed = /** @type {HTMLElement} */ (e.target).closest("[data-step]"),
      many = /** @type {HTMLInputElement | null} */ (pressed?.parentElement?.querySelector("input") ?? null);
    if (!pressed || !many) return;
    const before = many.value;
    if (/** @type {HTMLElement} */ (pressed).dataset.step === "1") many.stepUp();
    else many.stepDown();
    if (many.value !== before) send();
  });
  $("button", unsaved).addEventListener("click", send);
  addEventListener("online", () => {
    if (failures) send();
  });
  form.addEventListener(
    "submit",
    (e) => {
      if (!sending && !failures) return;
      e.preventDefault(); // the price on the button is not that of the choice yet
      e.stopImmediatePropagation();
      send();
    },
    true
  );
}
