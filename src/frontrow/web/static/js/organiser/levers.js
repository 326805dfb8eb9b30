// @ts-check
/** The levers: dialogs that say who is affected, with the newest numbers, before anything is done. */
import { $, ask, say } from "../dom.js";
import { number, t } from "../words.js";
const MINUTE_S = 60,
  HOUR_S = 3600;

/** @param {number} s */
export function about(s) {
  if (!Number.isFinite(s)) return t("never");
  if (s < MINUTE_S) return t("{n} s", { n: number(Math.ceil(s)) });
  if (s < HOUR_S) return t("{n} min", { n: number(Math.ceil(s / MINUTE_S)) });
  return t("{n} h", { n: number(Math.round((s / HOUR_S) * 10) / 10) });
}

/** What a rate means for those who wait, in a sentence; the capacity may end it before all of them are in.
 * @param {Record<string, number>} now @param {number} rate people per second @returns {string} */
function whenInside({ waiting = 0, active = 0, capacity = 0 }, rate) {
  if (!waiting) return t("Nobody is waiting now.");
  if (!(rate > 0)) return t("At this rate nobody is let in.");
  const room = Math.max(0, capacity - active),
    fit = Math.min(waiting, room),
    all = { all: number(waiting), capacity: number(capacity) };
  if (!fit) return t("The capacity of {capacity} is reached: people come in as others leave, whatever the rate.", all);
  if (fit === waiting)
    return t("All {all} who wait would be inside in {time}.", { ...all, time: about(waiting / rate) });
  return t(
    "{n} of {all} who wait would be inside in {time}. Then the capacity of {capacity} is reached, and people come in as others leave.",
    { ...all, n: number(fit), time: about(fit / rate) }
  );
}

export class Levers {
  /** @type {Record<string, number>} */ now = {};
  /** @param {string} base @param {any} room @param {string} csrf @param {() => void} done */
  constructor(base, room, csrf, done) {
    this.base = base;
    this.room = room;
    this.done = done;
    this.headers = { "x-csrf-token": csrf };
    for (const button of document.querySelectorAll("[data-opens]"))
      button.addEventListener("click", () => this.#open(/** @type {HTMLElement} */ (button).dataset.opens ?? ""));
    for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll("form[data-act]"))) {
      form.addEventListener("submit", (e) => {
        e.preventDefault();
        this.#send(form);
      });
      $("[data-close]", form).addEventListener("click", () => form.closest("dialog")?.close());
    }
    document.querySelector("#rate")?.addEventListener("input", () => this.#eta());
  }

  /** @param {Record<string, number>} now with the limits that hold now, whoever set them @param {boolean} paused */
  show(now, paused) {
    this.now = now;
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-count]")))
      cell.textContent = number(this.now[cell.dataset.count ?? ""] ?? 0);
    $("[data-opens=pause]").hidden = paused;
    $("[data-opens=resume]").hidden = !paused;
    this.#eta();
  }

  #eta() {
    $("#eta").textContent = whenInside(this.now, Number(/** @type {HTMLInputElement} */ ($("#rate")).value));
  }

  /** @param {string} name */
  #open(name) {
    const dialog = /** @type {HTMLDialogElement} */ ($(`#d-${name}`)),
      field = /** @type {HTMLInputElement | null} */ (dialog.querySelector("[name=value]"));
    if (field)
      field.value = String(
        name === "rate" ? this.now.rate : name === "capacity" ? this.now.capacity : this.room.message
      );
    $("[role=alert]", dialog).hidden = true;
    this.#eta();
    dialog.showModal();
  }

  /** @param {HTMLFormElement} form */
  async #send(form) {
    const act = form.dataset.act ?? "",
      fields = new FormData(form),
      buttons = [...form.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    const refusal = await this.#steer(act, String(fields.get("value") ?? ""), fields.get("what") === "sale");
    for (const button of buttons) button.disabled = false;
    const told = $("[role=alert]", form);
    told.hidden = !refusal;
    told.textContent = refusal;
    if (refusal) return;
    form.closest("dialog")?.close();
    say(
      {
        pause: t("Paused."),
        resume: t("The sale has resumed."),
        rate: t("The rate is set."),
        capacity: t("The capacity is set."),
        message: t("The message is shown.")
      }[act] ?? ""
    );
    this.done();
  }

  /** What went wrong, or nothing. @param {string} act @param {string} value @param {boolean} everything @returns {Promise<string>} */
  async #steer(act, value, everything) {
    const change =
      act === "pause" || act === "resume"
        ? { action: act }
        : act === "message"
          ? { message: value }
          : { [act === "rate" ? "rate_per_s" : "capacity"]: Number(value) };
    const steered = await ask(`${this.base}/room`, { method: "PATCH", body: change, headers: this.headers });
    if (!steered.ok) return refusal(steered);
    this.room = { ...this.room, phase: steered.body.phase, message: steered.body.message };
    if (!(act === "pause" && everything) && act !== "resume") return "";
    const sale = await ask(`${this.base}/${act}`, {
      method: "POST",
      headers: { ...this.headers, "idempotency-key": crypto.randomUUID() }
    });
    return sale.ok ? "" : refusal(sale);
  }
}

/** In the page's language: the words of the answer are for programs. @param {{status: number}} answer */
function refusal({ status }) {
  if (status === 0) return t("No connection. Nothing was changed; try again.");
  if (status === 401 || status === 403) return t("You are no longer allowed to do this. Sign in again.");
  return t("That did not work. Nothing was changed.");
}
