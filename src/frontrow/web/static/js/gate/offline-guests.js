// @ts-check
/** The guest list on this device (IndexedDB of its own): who has which tickets and add-ons, and what was handed out here.
 *
 * Online the server decides about an add-on. Without a line this gate hands out what its list says is left, remembers it
 * under the id of the first try and hands it in later; what another gate had handed out meanwhile is a conflict. */

const NAME = "frontrow-door-guests",
  VERSION = 1,
  ANSWER_MS = 2_500,
  LIST_MS = 30_000,
  HANDED_IN = 500,
  MAX_ROUNDS = 20,
  MAX_FOUND = 10;

/** @typedef {{key: string, name: string, bought: number, used: number}} AddOn */
/** @typedef {{booking: string, tickets: [string, number][], add_ons: AddOn[], name: string, email: string}} Guest */
/** @typedef {{event_id: string, at_us: number, names: boolean, guests: Guest[]}} GuestList */
/** @typedef {{redemption: string, event: string, booking: string, add_on: string, quantity: number, gate: string, at: string, sent: boolean, undone?: boolean}} Redeemed `undone`: to be taken back at the server too */
/** @typedef {{answer: "ok" | "used_up" | "not_bought" | "undone" | "no_line", add_ons: AddOn[], last: {gate: string, at: string} | null, redemption: string}} Told */

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const got = (request) =>
  new Promise((go, fail) => {
    request.onsuccess = () => go(request.result);
    request.onerror = () => fail(request.error);
  });

export class Guests {
  /** @param {IDBDatabase} base @param {string} event */
  constructor(base, event) {
    this._base = base;
    this._event = event;
    this._tag = "";
    /** @type {GuestList | null} */
    this.list = null;
    /** @type {Map<string, Guest>} */
    this._by_ticket = new Map();
    /** @type {Redeemed[]} what this device handed out and the list does not know */
    this._ours = [];
    base.onversionchange = () => base.close();
  }

  /** @param {string} event */
  static async opened(event) {
    const asked = indexedDB.open(NAME, VERSION);
    asked.onupgradeneeded = () => {
      asked.result.createObjectStore("lists", { keyPath: "id" });
      asked.result.createObjectStore("redeemed", { keyPath: "redemption" }).createIndex("event", "event");
    };
    const guests = new Guests(await got(asked), event);
    const kept = await got(guests._store("lists").get(event));
    if (kept) guests._take(kept.list, kept.tag);
    guests._ours = await got(guests._store("redeemed").index("event").getAll(event));
    return guests;
  }

  /** @param {string} name @param {IDBTransactionMode} [mode] */
  _store(name, mode = "readonly") {
    return this._base.transaction([name], mode, { durability: "strict" }).objectStore(name);
  }

  /** @param {GuestList} list @param {string} tag */
  _take(list, tag) {
    this.list = list;
    this._tag = tag;
    this._by_ticket = new Map(list.guests.flatMap((one) => one.tickets.map(([ticket]) => [ticket, one])));
  }

  /** How many redemptions wait to be handed in. */
  get waiting() {
    return this._ours.filter((one) => !one.sent).length;
  }

  /** @param {string} ticket */
  byTicket(ticket) {
    return this._by_ticket.get(ticket) ?? null;
  }

  /** The add-ons of a booking, with what was handed out here. @param {string} booking @returns {AddOn[]} */
  addOns(booking) {
    const found = this.list?.guests.find((one) => one.booking === booking && one.add_ons.length)?.add_ons ?? [];
    return found.map((one) => ({ ...one, used: one.used + this._here(booking, one.key) }));
  }

  /** @param {string} booking @param {string} key @param {boolean} [all] also what the server has heard of */
  _here(booking, key, all = true) {
    return this._ours
      .filter((one) => one.booking === booking && one.add_on === key && !one.undone && (all || !one.sent))
      .reduce((sum, one) => sum + one.quantity, 0);
  }

  /** Add-ons as the server told them, with what it has not heard of. @param {string} booking @param {AddOn[]} told @returns {AddOn[]} */
  withOurs(booking, told) {
    return told.map((one) => ({ ...one, used: one.used + this._here(booking, one.key, false) }));
  }

  /** People by a ticket's or booking's number, a seat, or, if the organiser allows it, a name.
   * @param {string} words @param {(seat: number) => string} seat @returns {Guest[]} */
  find(words, seat) {
    const text = words.trim().toLowerCase(),
      number = text.replace(/[\s-]/g, "");
    if (!text) return [];
    /** @param {Guest} one */
    const fits = (one) =>
      one.tickets.some(([ticket, at]) => ticket.toLowerCase() === number || seat(at).toLowerCase() === text) ||
      (number.length >= 6 && one.booking.toLowerCase().endsWith(number)) ||
      (text.length >= 2 && (one.name.toLowerCase().includes(text) || one.email.toLowerCase().includes(text)));
    return (this.list?.guests ?? []).filter(fits).slice(0, MAX_FOUND);
  }

  /** Hand out one of an add-on: the server's word if there is a line, else that of the list.
   * @param {import("./link.js").Link} link @param {string} booking @param {string} add_on @param {string} gate @returns {Promise<Told>} */
  async redeem(link, booking, add_on, gate) {
    const redemption = `web-${crypto.randomUUID()}`;
    if (link.up && !this._here(booking, add_on, false)) {
      const body = { booking, add_on, gate, redemption };
      const answer = await link.ask("/redeem", { body, deadline_ms: ANSWER_MS });
      if (answer.status === 200) {
        if (answer.body.answer === "ok") await this._remember(link, booking, add_on, gate, redemption, true);
        return { ...answer.body, redemption };
      }
      if (answer.body?.code === "booking_not_found")
        return { answer: "not_bought", add_ons: this.addOns(booking), last: null, redemption };
    }
    const held = this.addOns(booking).find((one) => one.key === add_on);
    if (!held) return { answer: "no_line", add_ons: this.addOns(booking), last: null, redemption };
    const left = held.bought - held.used;
    if (left > 0) await this._remember(link, booking, add_on, gate, redemption, false);
    return { answer: left > 0 ? "ok" : "used_up", add_ons: this.addOns(booking), last: null, redemption };
  }

  /** @param {import("./link.js").Link} link @param {string} booking @param {string} add_on @param {string} gate @param {string} redemption @param {boolean} sent */
  async _remember(link, booking, add_on, gate, redemption, sent) {
    const at = new Date(link.now_ms()).toISOString();
    /** @type {Redeemed} */
    const one = { redemption, event: this._event, booking, add_on, quantity: 1, gate, at, sent };
    await this._keep(one);
  }

  /** Take one back; false when that needs the line. @param {import("./link.js").Link} link @param {string} redemption */
  async undo(link, redemption) {
    const ours = this._ours.find((one) => one.redemption === redemption);
    const { status } = await link.ask("/redeem/undo", { body: { redemption } });
    if (status === 200) await this._drop([redemption]);
    else if (ours && !ours.sent) await this._keep({ ...ours, undone: true });
    else return false;
    return true;
  }

  /** @param {Redeemed} one */
  async _keep(one) {
    await got(this._store("redeemed", "readwrite").put(one));
    this._ours = [...this._ours.filter((other) => other.redemption !== one.redemption), one];
  }

  /** @param {string[]} redemptions */
  async _drop(redemptions) {
    const store = this._store("redeemed", "readwrite");
    await Promise.all(redemptions.map((one) => got(store.delete(one))));
    this._ours = this._ours.filter((one) => !redemptions.includes(one.redemption));
  }

  /** Hand in what was handed out without a line, then load the list if it has changed.
   * @param {import("./link.js").Link} link @param {(redemption: Redeemed, name: string, last: {gate: string, at: string} | null) => Promise<void>} conflict */
  async keepUp(link, conflict) {
    for (let round = 0; round < MAX_ROUNDS && this.waiting; round++) {
      const some = this._ours.filter((one) => !one.sent).slice(0, HANDED_IN);
      const redemptions = some.map(({ event, sent, undone, ...one }) => one);
      const { status, body } = await link.ask("/redeem/sync", { body: { redemptions } });
      if (status !== 200) return;
      for (const one of some) {
        const found = body.conflicts.find((/** @type {any} */ other) => other.redemption === one.redemption),
          name = this.addOns(one.booking).find((other) => other.key === one.add_on)?.name ?? one.add_on;
        if (!one.undone && (found || body.unknown.includes(one.redemption)))
          await conflict(one, name, found?.last ?? null);
        if (one.undone) {
          const undone = await link.ask("/redeem/undo", { body: { redemption: one.redemption } });
          if (undone.status !== 200) return;
        }
        await this._keep({ ...one, sent: true });
      }
    }
    const sent = this._ours.filter((one) => one.sent).map((one) => one.redemption);
    const { status, body, tag } = await link.ask("/guests", { tag: this._tag, deadline_ms: LIST_MS });
    if (status !== 200) return;
    this._take(body, tag);
    await got(this._store("lists", "readwrite").put({ id: this._event, list: body, tag }));
    await this._drop(sent); // the list knows them
  }

  /** Lists of other events that nobody needs any more. @param {string[]} kept their ids */
  async prune(kept) {
    for (const id of await got(this._store("lists").getAllKeys()))
      if (id !== this._event && !kept.includes(String(id))) await got(this._store("lists", "readwrite").delete(id));
  }

  /** Everything, for ever. */
  async forget() {
    this._base.close();
    await got(indexedDB.deleteDatabase(NAME));
  }
}
