// @ts-check
/** <fr-timer until="…" total-s="…">: counts a hold down, says so at 120, 60 and 20 seconds, fires "low" and "over". */
import { now_ms, say } from "./dom.js";
import { t, tn } from "./words.js";

const ROUND = 75.4;
const SPOKEN_AT_S = [120, 60, 20];

export class FrTimer extends HTMLElement {
  #every = 0;
  #left_s = Infinity;
  #over = false;
  connectedCallback() {
    this.#every = window.setInterval(() => this.tick(), 250);
    this.tick();
  }
  disconnectedCallback() {
    clearInterval(this.#every);
  }
  get left_s() {
    return Math.max(0, Math.ceil((Date.parse(this.getAttribute("until") ?? "") - now_ms()) / 1000));
  }
  /** Start anew until another moment. @param {string} until */
  restart(until) {
    this.setAttribute("until", until);
    this.#left_s = Infinity;
    this.#over = false;
    this.tick();
  }
  /** In a moment: the first tick comes before the page's script listens. @param {string} what */
  #tell(what) {
    setTimeout(() => this.dispatchEvent(new CustomEvent(what)));
  }
  tick() {
    const left_s = this.left_s,
      before_s = this.#left_s;
    if (Number.isNaN(left_s) || left_s === before_s) return;
    this.#left_s = left_s;
    const clock = this.querySelector(".clock"),
      ring = /** @type {SVGElement | null} */ (this.querySelector(".v"));
    if (clock) clock.textContent = `${Math.floor(left_s / 60)}:${String(left_s % 60).padStart(2, "0")}`;
    if (ring) ring.style.strokeDashoffset = String(ROUND * (1 - left_s / Number(this.getAttribute("total-s") || 600)));
    this.toggleAttribute("data-low", left_s <= 60);
    const due = SPOKEN_AT_S.filter((at_s) => left_s <= at_s && before_s > at_s).at(-1);
    if (due && left_s > 0 && (Number.isFinite(before_s) || left_s > due - 5))
      say(tn("{n} second left on your seats.", "{n} seconds left on your seats.", due));
    if (left_s <= 120) this.#tell("low");
    if (left_s === 0 && !this.#over) {
      this.#over = true;
      say(t("The time for your seats is over."));
      this.#tell("over");
    }
  }
}
customElements.define("fr-timer", FrTimer);
