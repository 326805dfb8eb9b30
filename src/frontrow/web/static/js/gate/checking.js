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
/** @typedef {{kind: Kind, ticket: string, seat: string, scan: string, first: import("./store.js").Seen | null, other: Sibling | null, why: string, type: string}} Checked `why` of ok: again, it came back */
/** @typedef {{id: string, name: string, when: string}} Sibling */

/** @type {Omit<Checked, "kind">} */
const NOTHING = { ticket: "", seat: "", scan: "", first: null, other: null, why: "", type: "" };

export class Checking {
  /** @param {{id: string, name: string}} event @param {Sibling[]} siblings @param {import("./link.js").Link} link
   * @param {import("./store.js").Store} store @param {import("./sync.js").Sync} sync @param {boolean} can_verify */
  constructor(event, siblings, link, store, sync, can_verify) {
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
      return { ...NOTHING, kind: "duplicate", ticket, seat: this._sync.gate?.seat(seat) ?? "", first: ours };
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
    if (status !== 200) return null;
    const results = [];
    for (const one of body.results) results.push(await this._told(one, "", gate));
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
      type: body.type ?? ""
    };
    if (body.verdict === "wrong_event") return this._elsewhere(code, body.other);
    if (body.verdict === "revoked") return { ...found, kind: body.reason === "refunded" ? "refunded" : "revoked" };
    if (body.verdict === "ok" || body.verdict === "left") {
      const ticket = read(code);
      await this._store.record(
        this._event.id,
        { id: body.ticket, seat: ticket?.seat, fence: ticket?.fence },
        this._seen(body.scan, gate, body.verdict === "ok" ? "in" : "out")
      );
    }
    return { ...found, kind: body.verdict, why: body.again ? "again" : "" };
  }

  /** A scan of this device, now. @param {string} scan @param {string} gate @param {import("./presence.js").Way} way @returns {import("./presence.js").Seen} */
  _seen(scan, gate, way) {
    return { scan, gate, at: new Date(this._link.now_ms()).toISOString(), way, mine: true };
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
    const found = { ...NOTHING, ticket: ticket.id, seat: held.seat(ticket.seat), type: held.type(ticket.seat) };
    if (verdict !== "ok") return { ...found, kind: /** @type {Kind} */ (verdict) };
    const seen = this._seen(scan, gate, way),
      { passage, first } = await this._store.pass(this._event.id, ticket, seen, this._sync.reentry);
    switch (passage) {
      case "ok":
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
