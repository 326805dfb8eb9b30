// @ts-check
/** People without a code: find their booking by name, e-mail address, number or seat, and let them in (or out) together.
 * A ticket's number finds that ticket; whoever stands at the gate compares the name and decides. */
import { $, h, say } from "../dom.js";
import { t, tn } from "../words.js";
import { addOnList } from "./add-ons.js";

/** @typedef {{ticket: string, seat: string, valid: boolean, admitted_at: string | null, outside: boolean}} Ticket */
/** @typedef {{booking: string, name: string, email: string, tickets: Ticket[], add_ons?: import("./offline-guests.js").AddOn[]}} Booking */
/** @typedef {{gate: () => string, seat: (name: string) => string, time: (at: string) => string, note: (found: import("./checking.js").Checked) => Promise<void>, paint: () => Promise<void>, again: () => boolean, leaving: () => boolean, counter: import("./add-ons.js").Counter}} Page */

/** Make the search work. @param {import("./link.js").Link} link @param {import("./checking.js").Checking} checking @param {Page} page
 * @returns {(number: string) => Promise<number | null>} shows the ticket with this number; how many match, null without a line */
export function openLookUp(link, checking, page) {
  const field = /** @type {HTMLInputElement} */ ($("#who")),
    list = $("#found"),
    told = $("#found-none");
  /** @param {string} text */
  const tell = (text) => {
    told.textContent = text;
    told.hidden = !text;
    if (text) say(text);
  };

  /** @returns {Promise<number | null>} how many match; null without a line */
  const search = async () => {
    const words = field.value.trim();
    if (!words) return null;
    const { status, body } = await link.ask(`/bookings?q=${encodeURIComponent(words)}`);
    const alone = !status || status >= 500 ? await checking.findAlone(words) : null;
    if (alone) {
      list.replaceChildren(...alone.map(card));
      tell(alone.length ? t("Offline: found on this device.") : t("No booking matches on this device."));
      return alone.length;
    }
    list.replaceChildren(...(status === 200 ? body.bookings.map(card) : []));
    if (status !== 200) tell(t("This needs a connection."));
    else if (!body.bookings.length) tell(t("No booking matches."));
    else tell(body.more ? t("There are more. Type more of the name.") : "");
    return status === 200 ? body.bookings.length : null;
  };

  /** May it be let in now, or out? @param {Ticket} one */
  const open = (one) => {
    if (page.leaving()) return one.valid && one.admitted_at !== null && !one.outside;
    return one.valid && (!one.admitted_at || (page.again() && one.outside));
  };
  /** @param {boolean} out @param {number} n */
  const button = (out, n) =>
    out ? tn("Let {n} person out", "Let {n} people out", n) : tn("Check in {n} person", "Check in {n} people", n);
  /** @param {Ticket} one */
  const stateOf = (one) => {
    if (!one.valid) return t("No longer valid");
    if (one.outside) return t("Outside");
    return one.admitted_at ? t("Inside since {time}", { time: page.time(one.admitted_at) }) : "";
  };

  /** @param {Booking} one */
  const card = (one) => {
    const left = one.tickets.filter(open),
      out = page.leaving(),
      go = h("button", { class: "btn primary sm" }, button(out, left.length));
    const form = h(
      "form",
      { class: "card pad stack tight" },
      h("p", {}, h("b", {}, h("bdi", {}, one.name || "–")), " ", h("bdi", { class: "muted small" }, one.email)),
      h("p", { class: "small muted" }, t("Booking"), " ", h("bdi", { class: "id" }, one.booking.slice(-8))),
      ...one.tickets.map((ticket) => {
        const label = page.seat(ticket.seat) || ticket.ticket;
        return open(ticket)
          ? h(
              "label",
              { class: "check" },
              h("input", { type: "checkbox", name: "ticket", value: ticket.ticket, checked: true }),
              ` ${label}`
            )
          : h("p", { class: "small" }, `${label} · ${stateOf(ticket)}`);
      }),
      ...(left.length ? [go] : []),
      ...(one.add_ons?.length ? [addOnList(one.booking, one.add_ons, page.counter)] : [])
    );
    const chosen = () =>
      [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input:checked"))].map((box) => box.value);
    form.addEventListener("change", () => {
      const n = chosen().length;
      go.textContent = button(out, n);
      /** @type {HTMLButtonElement} */ (go).disabled = n === 0;
    });
    form.addEventListener("submit", async (sent) => {
      sent.preventDefault();
      /** @type {HTMLButtonElement} */ (go).disabled = true;
      const results = await checking.checkIn(one.booking, chosen(), page.gate(), out ? "out" : "in");
      if (!results) {
        /** @type {HTMLButtonElement} */ (go).disabled = false;
        tell(t("This needs a connection."));
        return;
      }
      for (const found of results) await page.note(found);
      await page.paint();
      const n = results.filter((found) => found.kind === "ok" || found.kind === "left").length;
      await search(); // shows who is inside now
      tell(
        out
          ? tn("{n} person let out.", "{n} people let out.", n)
          : tn("{n} person admitted.", "{n} people admitted.", n)
      );
    });
    return h("li", {}, form);
  };

  $("#look-up").onsubmit = (sent) => {
    sent.preventDefault();
    search();
  };
  return async (number) => {
    field.value = number;
    const matches = await search();
    const box = /** @type {HTMLDetailsElement} */ (list.closest("details"));
    box.open = matches === 1;
    if (box.open) box.scrollIntoView({ block: "nearest" }); // the focus stays: a hand scanner's Enter admits nobody
    return matches;
  };
}
