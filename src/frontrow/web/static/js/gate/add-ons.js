// @ts-check
/** The add-ons of a booking at the gate: how many it has, how many were used, and the buttons that hand them out. */
import { h, say } from "../dom.js";
import { number, t } from "../words.js";

/** @typedef {{guests: import("./offline-guests.js").Guests, link: import("./link.js").Link, gate: () => string, time: (at: string) => string, paint: () => Promise<void>}} Counter */

/** @param {import("./offline-guests.js").AddOn} one */
function textOf(one) {
  const values = { name: one.name, n: number(one.bought), used: number(one.used) };
  if (one.used <= 0) return t("{name} · {n}, not yet used", values);
  return one.used >= one.bought ? t("{name} · {n}, used", values) : t("{name} · {used} of {n} used", values);
}

/** @param {import("./offline-guests.js").Told} told @param {(at: string) => string} time */
function answerText(told, time) {
  if (told.answer === "ok") return t("Handed out.");
  if (told.answer === "no_line") return t("This needs a connection.");
  if (told.answer === "not_bought") return t("Not bought, or refunded.");
  return told.last
    ? t("Already used at {time}, gate {gate}.", { time: time(told.last.at), gate: told.last.gate })
    : t("Already used.");
}

/** A list that hands out and takes back. @param {string} booking @param {import("./offline-guests.js").AddOn[]} add_ons @param {Counter} counter */
export function addOnList(booking, add_ons, counter) {
  const list = h("ul", { class: "plain add-ons", "aria-label": t("Add-ons") }),
    said = h("p", { class: "small", role: "status" });
  /** @type {Map<string, string>} the last redemption here of each add-on */
  const last = new Map();
  /** @param {import("./offline-guests.js").AddOn[]} now */
  const paint = (now) => list.replaceChildren(...now.map(row));

  /** @param {string} text */
  const tell = (text) => {
    said.textContent = text;
    say(text);
  };

  /** @param {import("./offline-guests.js").AddOn} one */
  const row = (one) => {
    const out = h("button", { type: "button", class: "btn primary sm" }, t("Hand out 1")),
      back = h("button", { type: "button", class: "btn quiet sm" }, t("Undo"));
    out.onclick = async () => {
      /** @type {HTMLButtonElement} */ (out).disabled = true;
      const told = await counter.guests.redeem(counter.link, booking, one.key, counter.gate());
      if (told.answer === "ok") last.set(one.key, told.redemption);
      paint(told.add_ons.length ? told.add_ons : add_ons);
      tell(answerText(told, counter.time));
      await counter.paint();
    };
    back.onclick = async () => {
      /** @type {HTMLButtonElement} */ (back).disabled = true;
      const undone = await counter.guests.undo(counter.link, last.get(one.key) ?? "");
      if (undone) last.delete(one.key);
      paint(
        undone ? shown().map((other) => (other.key === one.key ? { ...other, used: other.used - 1 } : other)) : shown()
      );
      tell(undone ? t("Undone") : t("This needs a connection."));
      await counter.paint();
    };
    const left = one.used < one.bought;
    const item = h(
      "li",
      { class: "row between" },
      h("span", {}, textOf(one)),
      h("span", { class: "row" }, ...(last.has(one.key) ? [back] : []), ...(left ? [out] : []))
    );
    Object.assign(item, { addOn: one });
    return item;
  };
  const shown = () => [...list.children].map((item) => /** @type {any} */ (item).addOn);
  paint(add_ons);
  return h("div", { class: "stack tight" }, list, said);
}
