// @ts-check
/** The way into the sale, and <fr-countdown until="…">: days, hours, minutes and seconds to the opening; reloads the page
 * once it is there. */
import { now_ms } from "./dom.js";
import { makePlaceKey } from "./place-key.js";
import "./share.js";
import { number, t } from "./words.js";

class FrCountdown extends HTMLElement {
  #every = 0;
  connectedCallback() {
    this.#every = window.setInterval(() => this.tick(), 1000);
    this.tick();
  }
  disconnectedCallback() {
    clearInterval(this.#every);
  }
  tick() {
    const left_s = Math.max(0, Math.ceil((Date.parse(this.getAttribute("until") ?? "") - now_ms()) / 1000));
    const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
    const days = Math.floor(left_s / 86400),
      clock = `${two(Math.floor(left_s / 3600) % 24)}:${two(Math.floor(left_s / 60) % 60)}:${two(left_s % 60)}`;
    this.textContent = days ? `${t("{n} d", { n: number(days) })} ${clock}` : clock;
    // the sale opens for everybody at once: spread the reloads
    if (!left_s) {
      clearInterval(this.#every);
      setTimeout(() => location.reload(), 500 + Math.random() * 3000);
    }
  }
}
customElements.define("fr-countdown", FrCountdown);

// "Get tickets": the place is bound to this browser, and a second click takes no second place
const form = /** @type {HTMLFormElement | null} */ (document.getElementById("enter"));
let sent = false;
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sent) return;
  sent = true;
  setTimeout(() => (sent = false), 3000);
  /** @type {HTMLInputElement} */ (form.elements.namedItem("cnf")).value = await makePlaceKey(form.dataset.event ?? "");
  form.submit();
});
export {};
