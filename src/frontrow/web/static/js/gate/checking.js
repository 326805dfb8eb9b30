// @ts-check
/** From a code to a verdict: the server's word if there is a line, else this gate's own, remembered and handed in later.
 *
 * A scan has an id from its first moment: if the server let the ticket in and its answer was lost, the gate decides again
 * by itself under the same id, and handing it in changes nothing. */
import { lang } from "../words.js";
import { eventHash, plain, read, ticketNumber } from "./codes.js";

const ANSWER_MS = 2_500,
  US = 1_000;

/** @typedef {import("./verdicts.js").Kind} Kind */
/** @typedef {{kind: Kind, ticket: string, seat: string, scan: string, first: import("./store.js").Seen | null, other: Sibling | null, why: string, type: string, name: string, booking: string, add_ons: import("./offline-guests.js").AddOn[]}} Checked `why` of ok: again, it came back */
/** @typedef {{id: string, name: string, when: string}} Sibling */

/** @type {Omit<Checked, "kind">} */
const NOTHING = {
  ticket: "",
  seat: "",
  scan: "",
  first: null,
  other: null,
  why: "",
  type: "",
  name: "",
  booking: "",
  add_ons: []
};

export class Checking {
  /** @param {{id: string, name: string}} event @param {Sibling[]} siblings @param {import("./link.js").Link} link
   * @param {import("./store.js").Store} store @param {import("./sync.js").Sync} sync @param {boolean} can_verify @param {import("./offline-guests.js").Guests} guests */
  constructor(event, siblings, link, store, sync, can_verify, guests) {
    this._guests = guests;
    this._event = event;
    this._siblings = new Map(siblings.map((one) => [eventHash(one.id), one]));
    this._link = link;
    this._store = store;
    this._sync = sync;
    this._can_verify = can_verify;
  }

  /** A number is no ticket: it is looked up, and a person decides (`look_up`).
   * @param {string} text as it was read or typed @param {string} gate @param {import("./presence.js").Way} [way] @returns {Promise<Checked>} */
  async check(text, gate, way = "in") {
    const number = ticketNumber(text),
      code = plain(text),
      ticket = number ?? read(code)?.id;
    if (!ticket) return { ...NOTHING, kind: "unreadable" };
    const ours = await this._store.unsent(this._event.id, ticket); // the server would decide without knowing of it
    if (ours && !this._sync.reentry) {
      const seat = (await this._store.known(this._event.id, ticket))?.seat ?? -1;
      return { ...this._described(ticket), kind: "duplicate", seat: this._sync.gate?.seat(seat) ?? "", first: ours };
    }
    if (number) return { ...NOTHING, kind: ours ? "unsure" : "look_up", ticket, why: ours ? "number" : "" };
    const scan = `web-${crypto.randomUUID()}`;
    if (this._link.up && !ours) {
      const path = way === "in" ? "/scan" : "/exit";
      const { status, body } = await this._link.ask(path, { body: { code, gate, scan }, deadline_ms: ANSWER_MS });
      if (status === 200) return this._told(body, code, gate);
      if (status === 409 && way === "out") {
        this._sync.reentry = false; // the organiser has changed it
        return { ...NOTHING, kind: "unsure", why: "no_exit" };
      }
    }
    return this._alone(code, gate, scan, way);
  }

  /** People of a booking let in together by the server, or out; null without a line.
   * @param {string} booking @param {string[]} tickets @param {string} gate @param {import("./presence.js").Way} way
   * @returns {Promise<Checked[] | null>} */
  async checkIn(booking, tickets, gate, way) {
    const scan = `web-${crypto.randomUUID()}`,
      out = way === "out" ? { way } : {}; // a server of an earlier version knows no way
    const { status, body } = await this._link.ask("/check-in", { body: { booking, tickets, gate, scan, ...out } });
    if (!status || status >= 500) return this._checkInAlone(tickets, gate, scan, way);
    if (status !== 200) return null;
    const results = [];
    for (const one of body.results) results.push(await this._told(one, "", gate));
    return results;
  }

  /** Who has a ticket, as far as the guest list says it. @param {string} ticket */
  _described(ticket) {
    const guest = this._guests.byTicket(ticket);
    if (!guest) return { ...NOTHING, ticket };
    const add_ons = guest.add_ons.length ? this._guests.addOns(guest.booking) : [];
    return { ...NOTHING, ticket, name: guest.name, booking: guest.booking, add_ons };
  }

  /** People of the guest list, when there is no line; null without a list.
   * @param {string} words @returns {Promise<import("./lookup.js").Booking[] | null>} */
  async findAlone(words) {
    const held = this._sync.gate;
    if (!held || !this._guests.list) return null;
    const number = ticketNumber(words),
      found = this._guests.find(number ?? words, (seat) => held.seat(seat));
    return Promise.all(
      found.map(async (one) => ({
        booking: one.booking,
        name: one.name,
        email: one.email,
        add_ons: one.add_ons.length ? this._guests.addOns(one.booking) : [],
        tickets: await Promise.all(
          one.tickets
            .filter(([ticket]) => !number || ticket === number)
            .map(([ticket, seat]) => this._ticketAlone(ticket, held.seat(seat)))
        )
      }))
    );
  }

  /** @param {string} ticket @param {string} seat @returns {Promise<import("./lookup.js").Ticket>} */
  async _ticketAlone(ticket, seat) {
    const scans = (await this._store.known(this._event.id, ticket))?.scans ?? [],
      admitted = scans.find((one) => one.way === "in");
    return {
      ticket,
      seat,
      valid: !this._sync.gate?.revoked.has(ticket),
      admitted_at: admitted?.at ?? null,
      outside: scans.at(-1)?.way === "out"
    };
  }

  /** Without a line, under the ids that the server would have used. @param {string[]} tickets @param {string} gate @param {string} scan
   * @param {import("./presence.js").Way} way @returns {Promise<Checked[] | null>} */
  async _checkInAlone(tickets, gate, scan, way) {
    const held = this._sync.gate;
    if (!held) return null;
    const results = [];
    for (const ticket of tickets) {
      const seat = this._guests.byTicket(ticket)?.tickets.find(([id]) => id === ticket)?.[1];
      if (seat === undefined) return null;
      const found = { ...this._described(ticket), seat: held.seat(seat), type: held.type(seat) };
      if (way === "in" && held.blocks(ticket)) results.push({ ...found, kind: /** @type {Kind} */ ("disputed") });
      else if (held.revoked.has(ticket)) results.push({ ...found, kind: /** @type {Kind} */ ("revoked") });
      else results.push(await this._passAlone(found, { id: ticket, seat, fence: 0 }, gate, `${scan}:${seat}`, way));
    }
    return results;
  }

  /** What the server said. @param {any} body @param {string} code @param {string} gate @returns {Promise<Checked>} */
  async _told(body, code, gate) {
    const found = {
      ...NOTHING,
      ticket: body.ticket,
      seat: body.seat,
      scan: body.scan,
      first: body.first,
      type: body.type ?? "",
      name: body.name ?? "", // a server of an earlier version tells less
      booking: body.booking ?? "",
      add_ons: this._guests.withOurs(body.booking ?? "", body.add_ons ?? [])
    };
    if (body.verdict === "wrong_event") return this._elsewhere(code, body.other);
    if (body.verdict === "revoked") return { ...found, kind: body.reason === "refunded" ? "refunded" : "revoked" };
    if (body.verdict === "ok" || body.verdict === "left") {
      const ticket = read(code);
      await this._store.record(
        this._event.id,
        { id: body.ticket, seat: ticket?.seat, fence: ticket?.fence },
        this._seen(body.scan, gate, body.verdict === "ok" ? "in" : "out", body.at)
      );
    }
    return { ...found, kind: body.verdict, why: body.again ? "again" : body.disputed ? "disputed" : "" };
  }

  /** A scan of this device: at the time that the server wrote down, or now. Later scans of the ticket come after it.
   * @param {string} scan @param {string} gate @param {import("./presence.js").Way} way @param {string | null} [at]
   * @returns {import("./presence.js").Seen} */
  _seen(scan, gate, way, at) {
    return { scan, gate, at: at ?? new Date(this._link.now_ms()).toISOString(), way, mine: true };
  }

  /** Whose ticket it is, if it is one of ours on another day or of another show.
   * @param {string} code @param {{event: string, name: string, starts_at: string, time_zone: string} | null} [told] @returns {Checked} */
  _elsewhere(code, told) {
    const other =
      this._siblings.get(read(code)?.event ?? "") ??
      (told ? { id: told.event, name: told.name, when: dayOf(told.starts_at, told.time_zone) } : null);
    return { ...NOTHING, other, kind: other?.name === this._event.name ? "wrong_day" : "wrong_event" };
  }

  /** Without a line. @param {string} code @param {string} gate @param {string} scan @param {import("./presence.js").Way} way @returns {Promise<Checked>} */
  async _alone(code, gate, scan, way) {
    const held = this._sync.gate;
    if (!held) return { ...NOTHING, kind: "unsure", why: this._can_verify ? "bundle" : "browser" };
    const { verdict, ticket } = await held.verify(code, this._link.now_ms() * US);
    if (verdict === "wrong_event") return this._elsewhere(code);
    if (!ticket) return { ...NOTHING, kind: /** @type {Kind} */ (verdict) };
    const found = { ...this._described(ticket.id), seat: held.seat(ticket.seat), type: held.type(ticket.seat) };
    const may_leave = verdict === "disputed" && way === "out"; // whoever is inside
    if (verdict !== "ok" && !may_leave) return { ...found, kind: /** @type {Kind} */ (verdict) };
    return this._passAlone(found, ticket, gate, scan, way);
  }

  /** Let a valid ticket pass by what this device knows. @param {Omit<Checked, "kind">} found @param {{id: string, seat: number, fence: number}} ticket
   * @param {string} gate @param {string} scan @param {import("./presence.js").Way} way @returns {Promise<Checked>} */
  async _passAlone(found, ticket, gate, scan, way) {
    const seen = this._seen(scan, gate, way),
      { passage, first } = await this._store.pass(this._event.id, ticket, seen, this._sync.reentry);
    switch (passage) {
      case "ok":
        return { ...found, kind: passage, scan, why: this._sync.gate?.disputed.has(ticket.id) ? "disputed" : "" };
      case "left":
        return { ...found, kind: passage, scan };
      case "again":
        return { ...found, kind: "ok", scan, why: "again" };
      case "replaced":
        return { ...found, kind: "revoked", why: "replaced" };
      default:
        return { ...found, kind: passage, first };
    }
  }

  /** Take an admission back; false when that needs the line. @param {string} ticket @param {string} scan */
  async undo(ticket, scan) {
    await this._sync.now(); // nothing of it is on its way meanwhile
    const known = (await this._store.waiting(this._event.id)).some((one) => one.scan === scan);
    const { status } = await this._link.ask("/undo", { body: { scan, ticket } });
    if (status !== 200 && !known) return false;
    await this._store.undo(this._event.id, ticket, scan);
    return true;
  }
}

/** A show's day and hour where it is. @param {string} at @param {string} timeZone */
function dayOf(at, timeZone) {
  /** @type {Intl.DateTimeFormatOptions} */
  const how = { weekday: "long", day: "numeric", month: "long", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  try {
    return new Intl.DateTimeFormat(lang, { ...how, timeZone, numberingSystem: "latn" }).format(new Date(at));
  } catch {
    return new Intl.DateTimeFormat(lang, { ...how, numberingSystem: "latn" }).format(new Date(at));
  }
}
