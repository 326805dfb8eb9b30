// @ts-check
/** What this device remembers of its events (IndexedDB): bundles, who came in, scans to hand in, conflicts, last scans.
 *
 * An admission is one transaction, on the disk before anybody sees green: of two tabs that scan one ticket, one admits. */
import { admittedBy, after, cameTwice, decide, entries, merge } from "./presence.js";

const NAME = "frontrow-door",
  VERSION = 1;
const CHUNK = 500;
const MAX_RECENT = 30;
const OTHERS_MS = 3 * 86_400_000; // other events are kept so long

/** @typedef {import("./presence.js").Way} Way */
/** @typedef {import("./presence.js").Known} Known */
/** @typedef {import("./presence.js").Seen} Scan */
/** @typedef {{scan: string, event: string, ticket: string, gate: string, at: string, way?: Way}} Waiting */
/** @typedef {{gate: string, at: string}} Seen */
/** @typedef {{event: string, ticket: string, seat: string, kind: "twice" | "revoked" | "unknown" | "add_on", scans: Seen[], settled?: boolean}} Conflict */
/** @typedef {{event: string, at: string, kind: string, heading: string, seat: string, ticket: string, scan: string, number?: number}} Recent */
/** @typedef {{id: string, name: string, bundle: import("./gate-check.js").Bundle, tag: string, at: string}} KeptEvent */

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const got = (request) =>
  new Promise((go, fail) => {
    request.onsuccess = () => go(request.result);
    request.onerror = () => fail(request.error);
  });

/** @param {IDBTransaction} work @returns {Promise<void>} */
const done = (work) =>
  new Promise((go, fail) => {
    work.oncomplete = () => go();
    work.onabort = work.onerror = () => fail(work.error);
  });

/** A ticket's row; one that an older version of this page wrote had a single scan. @param {any} row @returns {Known | undefined} */
function knownOf(row) {
  if (!row || row.scans) return row;
  const { event, ticket, seat, fence, scan, gate, at, mine, out } = row;
  return { event, ticket, seat, fence, scans: [{ scan, gate, at: out ?? at, way: out ? "out" : "in", mine }] };
}

export class Store {
  /** @param {IDBDatabase} base */
  constructor(base) {
    this._base = base;
    base.onversionchange = () => base.close();
  }

  static async opened() {
    const asked = indexedDB.open(NAME, VERSION);
    asked.onupgradeneeded = () => {
      const base = asked.result;
      base.createObjectStore("events", { keyPath: "id" });
      base.createObjectStore("used", { keyPath: ["event", "ticket"] }).createIndex("seat", ["event", "seat"]);
      base.createObjectStore("waiting", { keyPath: "scan" }).createIndex("event", "event");
      base.createObjectStore("conflicts", { keyPath: ["event", "ticket"] }).createIndex("event", "event");
      base.createObjectStore("recent", { keyPath: "number", autoIncrement: true }).createIndex("event", "event");
    };
    navigator.storage?.persist?.().catch(() => {});
    return new Store(await got(asked));
  }

  /** @param {string[]} names @param {IDBTransactionMode} [mode] */
  _work(names, mode = "readonly") {
    return this._base.transaction(names, mode, { durability: "strict" });
  }

  /** @param {string} name @param {unknown} value */
  async _put(name, value) {
    const work = this._work([name], "readwrite");
    work.objectStore(name).put(value);
    await done(work);
  }

  /** @param {string} id @returns {Promise<KeptEvent | undefined>} */
  event(id) {
    return got(this._work(["events"]).objectStore("events").get(id));
  }

  /** @param {KeptEvent} kept */
  keepEvent(kept) {
    return this._put("events", kept);
  }

  /** The events that this device keeps. @returns {Promise<string[]>} */
  async events() {
    return (await got(this._work(["events"]).objectStore("events").getAllKeys())).map(String);
  }

  /** Let a valid ticket pass, or say why not, and to whose scan it lost. What passes waits to be handed in.
   * @param {string} event @param {{id: string, seat: number, fence: number}} ticket @param {Scan} scan @param {boolean} reentry
   * @returns {Promise<{passage: import("./presence.js").Passage, first: Seen | null}>} */
  async pass(event, ticket, scan, reentry) {
    const work = this._work(["used", "waiting"], "readwrite"),
      used = work.objectStore("used");
    const known = knownOf(await got(used.get([event, ticket.id])));
    const same = (await got(used.index("seat").getAll([event, ticket.seat]))).map((row) => knownOf(row) ?? row);
    const passage = decide(known, same, ticket, scan.way, reentry);
    if (passage === "duplicate" || passage === "replaced" || passage === "not_inside")
      return { passage, first: passage === "duplicate" ? admittedBy(known?.scans ?? [], reentry) : null };
    const { mine, ...passed } = after(known?.scans ?? [], scan);
    used.put(this._with(known, event, ticket, [{ ...passed, mine }]));
    /** @type {Waiting} */
    const waiting = { ...passed, event, ticket: ticket.id };
    work.objectStore("waiting").put(waiting);
    await done(work);
    return { passage, first: null };
  }

  /** @param {Known | undefined} known @param {string} event @param {{id: string, seat?: number, fence?: number}} ticket @param {Scan[]} scans @returns {Known} */
  _with(known, event, { id, seat, fence }, scans) {
    /** @type {Known} */
    const next = { event, ticket: id, scans: merge(known?.scans ?? [], scans) };
    // without its seat a row is not in the index of seats
    return Object.assign(
      next,
      (seat ?? known?.seat) === undefined ? {} : { seat: seat ?? known?.seat, fence: fence ?? known?.fence }
    );
  }

  /** Remember a scan that the server decided. @param {string} event @param {{id: string, seat?: number, fence?: number}} ticket @param {Scan} scan */
  async record(event, ticket, scan) {
    const work = this._work(["used"], "readwrite"),
      used = work.objectStore("used");
    const known = knownOf(await got(used.get([event, ticket.id])));
    used.put(this._with(known, event, ticket, [after(known?.scans ?? [], scan)]));
    await done(work);
  }

  /** @param {string} event @param {string} ticket @returns {Promise<Known | undefined>} */
  async known(event, ticket) {
    return knownOf(await got(this._work(["used"]).objectStore("used").get([event, ticket])));
  }

  /** Our newest scan of a ticket that the server has not heard of yet. @param {string} event @param {string} ticket @returns {Promise<Scan | null>} */
  async unsent(event, ticket) {
    const mine = ((await this.known(event, ticket))?.scans ?? []).filter((one) => one.mine);
    if (!mine.length) return null;
    const waiting = this._work(["waiting"]).objectStore("waiting");
    const keys = await Promise.all(mine.map((one) => got(waiting.getKey(one.scan))));
    return mine.findLast((_, n) => keys[n] !== undefined) ?? null;
  }

  /** Take a scan of ours back. @param {string} event @param {string} ticket @param {string} scan */
  async undo(event, ticket, scan) {
    const work = this._work(["used", "waiting"], "readwrite"),
      used = work.objectStore("used");
    work.objectStore("waiting").delete(scan);
    const known = knownOf(await got(used.get([event, ticket])));
    if (known) this._put_scans(used, known, (one) => one.scan !== scan);
    await done(work);
  }

  /** @param {IDBObjectStore} used @param {Known} known @param {(one: Scan) => boolean} keeps */
  _put_scans(used, known, keeps) {
    const scans = known.scans.filter(keeps);
    if (scans.length) used.put({ ...known, scans });
    else used.delete([known.event, known.ticket]);
  }

  /** What all gates let in and out, a few at a time so that a scan need not wait; those tickets of ours that were let in
   * while they were inside. `whole`: the list is complete, so what it no longer has was taken back.
   * @param {string} event @param {(Scan & {ticket: string})[]} scans @param {boolean} whole @returns {Promise<{ticket: string, scans: Scan[]}[]>} */
  async learn(event, scans, whole) {
    /** @type {Map<string, Scan[]>} */
    const by_ticket = new Map();
    for (const { ticket, ...one } of scans) by_ticket.set(ticket, [...(by_ticket.get(ticket) ?? []), one]);
    const listed = [...by_ticket];
    /** @type {{ticket: string, scans: Scan[]}[]} */
    const twice = [];
    for (let at = 0; at < listed.length; at += CHUNK) {
      const some = listed.slice(at, at + CHUNK),
        work = this._work(["used"], "readwrite"),
        used = work.objectStore("used");
      const rows = await Promise.all(some.map(([ticket]) => got(used.get([event, ticket]))));
      some.forEach(([ticket, more], n) => {
        const known = knownOf(rows[n]),
          next = this._with(known, event, { id: ticket }, more);
        if (known && next.scans.length === known.scans.length) return;
        used.put(next);
        if (cameTwice(next.scans) && next.scans.some((one) => one.mine))
          twice.push({ ticket, scans: entries(next.scans) });
      });
      await done(work);
    }
    if (whole) await this._forgetBut(event, new Set(scans.map((one) => one.scan)));
    return twice;
  }

  /** @param {string} event @param {Set<string>} scans */
  async _forgetBut(event, scans) {
    const range = IDBKeyRange.bound([event, ""], [event, "\uffff"]);
    /** @type {unknown[]} */
    const all = await got(this._work(["used"]).objectStore("used").getAll(range));
    const work = this._work(["used"], "readwrite"),
      used = work.objectStore("used");
    for (const row of all) {
      const known = knownOf(row);
      if (known?.scans.some((one) => !one.mine && !scans.has(one.scan)))
        this._put_scans(used, known, (one) => one.mine || scans.has(one.scan));
    }
    await done(work);
  }

  /** @param {string} event @param {number} [limit] @returns {Promise<Waiting[]>} */
  waiting(event, limit) {
    return got(this._work(["waiting"]).objectStore("waiting").index("event").getAll(event, limit));
  }

  /** @param {string} event @returns {Promise<number>} */
  countWaiting(event) {
    return got(this._work(["waiting"]).objectStore("waiting").index("event").count(event));
  }

  /** @param {Waiting[]} scans */
  async handedIn(scans) {
    const work = this._work(["waiting"], "readwrite");
    for (const one of scans) work.objectStore("waiting").delete(one.scan);
    await done(work);
  }

  /** One that is known with as many scans stays as it is, also when it was dealt with. @param {Conflict} conflict */
  async keepConflict(conflict) {
    const work = this._work(["conflicts"], "readwrite"),
      kept = work.objectStore("conflicts");
    const known = await got(kept.get([conflict.event, conflict.ticket]));
    if (!known || known.scans.length < conflict.scans.length) kept.put(conflict);
    await done(work);
  }

  /** Those that nobody has dealt with. @param {string} event @returns {Promise<Conflict[]>} */
  async conflicts(event) {
    /** @type {Conflict[]} */
    const all = await got(this._work(["conflicts"]).objectStore("conflicts").index("event").getAll(event));
    return all.filter((one) => !one.settled);
  }

  /** @param {Conflict} conflict */
  settle(conflict) {
    return this._put("conflicts", { ...conflict, settled: true });
  }

  /** @param {Recent} one */
  async remember(one) {
    const work = this._work(["recent"], "readwrite"),
      recent = work.objectStore("recent");
    recent.add(one);
    const keys = await got(recent.index("event").getAllKeys(one.event));
    for (const key of keys.slice(0, Math.max(0, keys.length - MAX_RECENT))) recent.delete(key);
    await done(work);
  }

  /** An admission in the list that was taken back. @param {Recent} one @param {string} heading */
  rewrite(one, heading) {
    return this._put("recent", { ...one, heading, kind: "undone", scan: "" });
  }

  /** Newest first. @param {string} event @returns {Promise<Recent[]>} */
  async recent(event) {
    return (await got(this._work(["recent"]).objectStore("recent").index("event").getAll(event))).reverse();
  }

  /** Other events that are long over, with their keys and lists; not those with scans to hand in.
   * @param {string} here */
  async prune(here) {
    const before_ms = Date.now() - OTHERS_MS;
    /** @type {KeptEvent[]} */
    const all = await got(this._work(["events"]).objectStore("events").getAll());
    for (const { id, at } of all) {
      if (id === here || Date.parse(at) >= before_ms || (await this.countWaiting(id))) continue;
      const work = this._work(["events", "used", "conflicts", "recent"], "readwrite");
      work.objectStore("events").delete(id);
      for (const name of ["used", "conflicts"])
        work.objectStore(name).delete(IDBKeyRange.bound([id, ""], [id, "\uffff"]));
      for (const key of await got(work.objectStore("recent").index("event").getAllKeys(id)))
        work.objectStore("recent").delete(key);
      await done(work);
    }
  }

  /** Everything, for ever. */
  async forget() {
    this._base.close();
    await got(indexedDB.deleteDatabase(NAME));
  }
}
