// @ts-check
/** Keeps a gate up with the others: hands in what it did alone, learns of revocations and admissions, reads the counts.
 *
 * One round every 10 s while people come, every 30 s when nobody does, none while the screen is off; without a line a
 * try after 3, 6, 12 … 60 s, and at once when the browser says the line is back. */
import { Gate } from "./gate-check.js";

const BUSY_MS = 10_000,
  CALM_MS = 30_000,
  CALM_AFTER_MS = 120_000,
  AGAIN_MS = 3_000,
  MAX_AGAIN_MS = 60_000;
const HANDED_IN = 500,
  MAX_ROUNDS = 200,
  PAGE = 5_000,
  ANEW_MS = 600_000,
  BUNDLE_MS = 30_000;

export class Sync extends EventTarget {
  /** @param {string} event @param {import("./link.js").Link} link @param {import("./store.js").Store} store @param {boolean} can_verify
   * @param {import("./offline-guests.js").Guests} guests @param {boolean} [reentry] what the page says until the bundle does */
  constructor(event, link, store, can_verify, guests, reentry = false) {
    super();
    this._guests = guests;
    this._event = event;
    /** Whether people may leave and come back. */
    this.reentry = reentry;
    this._link = link;
    this._store = store;
    this._can_verify = can_verify;
    /** @type {Gate | null} */
    this.gate = null;
    /** @type {{tickets: number, inside: number, outside: number, gates: {gate: string, tickets: number, exits: number}[]} | null} */
    this.counts = null;
    this._tag = "";
    this._bundle_tag = "";
    this._bundle_ms = 0;
    /** What the server says changes with a dispute, now and when the bundle was read. */
    this._disputes = "";
    this._bundle_disputes = "";
    this._after = 0;
    this._whole_ms = 0;
    this._failures = 0;
    this._scanned_ms = Date.now();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._timer = undefined;
    /** @type {Promise<void> | null} */
    this._round = null;
  }

  /** What was kept from the last time, so that a start without a line works. */
  async start() {
    const kept = await this._store.event(this._event);
    if (kept && this._can_verify) {
      this.gate = await Gate.opened(kept.bundle).catch(() => null);
      this._tag = this.gate ? kept.tag : "";
      this.reentry = this.gate?.bundle.reentry ?? this.reentry; // a page from the cache may be older
    }
    await this._store.prune(this._event);
    await this._guests.prune(await this._store.events());
    addEventListener("online", () => this.now());
    addEventListener("offline", () => this._link.lost());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.now();
    });
    await this.now();
  }

  /** Somebody was scanned: people come. */
  scanned() {
    this._scanned_ms = Date.now();
  }

  /** One round now; asking twice is one round. */
  now() {
    clearTimeout(this._timer);
    this._round ??= this._go().finally(() => {
      this._round = null;
      this._plan();
      this.dispatchEvent(new Event("change"));
    });
    return this._round;
  }

  _plan() {
    clearTimeout(this._timer);
    if (document.hidden && this._link.up) return; // looked at again: a round at once
    const again_ms = Math.min(MAX_AGAIN_MS, AGAIN_MS * 2 ** Math.max(0, this._failures - 1));
    const calm = Date.now() - this._scanned_ms > CALM_AFTER_MS;
    this._timer = setTimeout(
      () => this.now(),
      (this._failures ? again_ms : calm ? CALM_MS : BUSY_MS) * (0.9 + Math.random() / 5)
    );
  }

  async _go() {
    const fine = (await this._handIn()) && (await this._keepUp());
    this._failures = fine ? 0 : this._failures + 1;
  }

  /** Scans made without a line, oldest first; false when there still is none. */
  async _handIn() {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const scans = await this._store.waiting(this._event, HANDED_IN);
      if (!scans.length) return true;
      const asked = scans.map(({ scan, ticket, gate, at, way }) => ({ scan, ticket, gate, at, way: way ?? "in" }));
      const { status, body } = await this._link.ask("/sync", { body: { scans: asked } });
      if (status !== 200) return false;
      for (const one of body.duplicates) await this._conflict(one.ticket, "twice", one.scans);
      for (const kind of /** @type {const} */ (["unknown", "revoked"])) {
        for (const ticket of body[kind])
          await this._conflict(
            ticket,
            kind,
            scans.filter((one) => one.ticket === ticket)
          );
      }
      await this._store.handedIn(scans);
    }
    return true;
  }

  /** @param {string} ticket @param {"twice" | "revoked" | "unknown"} kind @param {import("./store.js").Seen[]} scans */
  async _conflict(ticket, kind, scans) {
    const ours = await this._store.known(this._event, ticket);
    const seat = ours?.seat === undefined ? "" : (this.gate?.seat(ours.seat) ?? "");
    await this._store.keepConflict({
      event: this._event,
      ticket,
      seat,
      kind,
      scans: scans.map(({ gate, at }) => ({ gate, at }))
    });
  }

  /** An add-on that was handed out here although it had been used, or was refunded.
   * @param {import("./offline-guests.js").Redeemed} one @param {string} name @param {import("./store.js").Seen | null} last */
  _addOnConflict(one, name, last) {
    const scans = [...(last ? [last] : []), { gate: one.gate, at: one.at }];
    return this._store.keepConflict({ event: this._event, ticket: one.redemption, seat: name, kind: "add_on", scans });
  }

  /** The lists and counts; false when there is no line. */
  async _keepUp() {
    if (!this.gate && this._can_verify && !(await this._takeBundle())) return this._link.up;
    const [counts, list] = await Promise.all([
      this._link.ask("/counts"),
      this._link.ask("/revocations", { tag: this._tag }),
      this._learn()
    ]);
    await this._guests.keepUp(this._link, (one, name, last) => this._addOnConflict(one, name, last));
    if (counts.status === 200) {
      this.counts = counts.body;
      this.reentry = counts.body.reentry ?? this.reentry;
      this._disputes = counts.body.disputes ?? ""; // a server of an earlier version knows none
    }
    if (list.status === 200 && this.gate) {
      if (await this.gate.revoke(list.body)) {
        this._tag = list.tag;
        await this._store.keepEvent({
          id: this._event,
          name: this.gate.bundle.name,
          bundle: { ...this.gate.bundle, revocations: list.body },
          tag: list.tag,
          at: new Date().toISOString()
        });
      } else await this._takeBundle(); // signed by a key newer than ours
    }
    const fine = counts.status === 200;
    if (fine && this.gate && this._isOld(this.gate.bundle)) await this._takeBundle();
    return fine;
  }

  /** Whether the rules of a bundle have changed, or its ticket types may have: more was sold. @param {import("./gate-check.js").Bundle} bundle */
  _isOld(bundle) {
    const types = Object.keys(bundle.types ?? { unknown: [] }).length; // a bundle of an older version does not say
    if (this._disputes !== this._bundle_disputes) return true;
    return (bundle.reentry ?? false) !== this.reentry || (types > 0 && Date.now() - this._bundle_ms > ANEW_MS);
  }

  async _takeBundle() {
    const { status, body, tag } = await this._link.ask("/bundle", { tag: this._bundle_tag, deadline_ms: BUNDLE_MS });
    if (status === 304) {
      this._bundle_ms = Date.now();
      this._bundle_disputes = this._disputes;
    }
    if (status !== 200) return false;
    this._bundle_ms = Date.now();
    this._bundle_tag = tag;
    this._bundle_disputes = this._disputes;
    this.gate = await Gate.opened(body);
    this.reentry = this.gate.bundle.reentry ?? false;
    await this._store.keepEvent({
      id: this._event,
      name: body.name,
      bundle: body,
      tag: "",
      at: new Date().toISOString()
    });
    this._tag = "";
    return true;
  }

  /** What other gates let in; every ten minutes the whole list, for what was taken back or came late. */
  async _learn() {
    const whole = Date.now() - this._whole_ms > ANEW_MS;
    /** @type {(import("./presence.js").Seen & {ticket: string})[]} */
    const scans = [];
    let after = whole ? 0 : this._after;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { status, body } = await this._link.ask(`/admissions?after=${after}&limit=${PAGE}`);
      if (status !== 200) return;
      for (const one of body.admissions) scans.push({ ...one, mine: false });
      after = body.next;
      if (body.admissions.length < PAGE) break;
    }
    for (const one of await this._store.learn(this._event, scans, whole))
      await this._conflict(one.ticket, "twice", one.scans);
    this._after = after;
    if (whole) this._whole_ms = Date.now();
  }
}
