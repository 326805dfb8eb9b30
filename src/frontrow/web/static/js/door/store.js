// @ts-check
/** What this device remembers of its events (IndexedDB): bundles, who came in, scans to hand in, conflicts, last scans.
 *
 * An admission is one transaction, on the disk before anybody sees green: of two tabs that scan one ticket, one admits. */
const NAME = "frontrow-door",
  VERSION = 1;
const CHUNK = 500;
export const MAX_RECENT = 30;

/** @typedef {"in" | "out"} Way */
/** @typedef {{event: string, ticket: string, scan: string, gate: string, at: string, mine: boolean, seat?: number, fence?: number, out?: string}} Use `out`: left at, and may come back */
/** @typedef {{scan: string, event: string, ticket: string, gate: string, at: string, way?: Way}} Waiting */
/** @typedef {{scan: string, gate: string, at: string}} Leaving */
/** @typedef {{gate: string, at: string}} Seen */
/** @typedef {{event: string, ticket: string, seat: string, kind: "twice" | "revoked" | "unknown", scans: Seen[], settled?: boolean}} Conflict */
/** @typedef {{event: string, at: string, kind: string, heading: string, seat: string, ticket: string, scan: string, number?: number}} Recent */
/** @typedef {{id: string, name: string, bundle: import("./gate.js").Bundle, tag: string, at: string}} KeptEvent */

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

/** What another gate's scan changes about a ticket we know; null for nothing. Older scans change nothing.
 * @param {Use} was @param {Use} use @param {Way} [way] @returns {Use | null} */
function follow(was, use, way) {
  if (way === "out") return !was.out && use.at > was.at ? { ...was, out: use.at } : null;
  return was.out && use.at > was.out ? { ...use, seat: was.seat, fence: was.fence } : null;
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

  /** Let a ticket in unless it is in, or a newer ticket of its seat is; what stands against it, else null.
   * @param {Use} use @param {boolean} wait whether it is to be handed in @param {boolean} [again] whether it may come back after leaving
   * @returns {Promise<Use | null>} */
  async admit(use, wait, again = false) {
    const work = this._work(["used", "waiting"], "readwrite"),
      used = work.objectStore("used");
    const known = await got(used.get([use.event, use.ticket]));
    if (known && !(again && known.out)) return known;
    if (use.seat !== undefined) {
      /** @type {Use[]} */
      const same = await got(used.index("seat").getAll([use.event, use.seat]));
      const newer = same.find((one) => (one.fence ?? 0) > (use.fence ?? 0));
      if (newer) return newer;
    }
    used.put(use);
    if (wait)
      work
        .objectStore("waiting")
        .put(
          /** @type {Waiting} */ ({ scan: use.scan, event: use.event, ticket: use.ticket, gate: use.gate, at: use.at })
        );
    await done(work);
    return null;
  }

  /** Let a ticket out; false when this gate knows that it has left. Who came in elsewhere may be unknown here.
   * @param {string} event @param {string} ticket @param {Leaving} leaving @param {boolean} wait whether it is to be handed in */
  async leave(event, ticket, leaving, wait) {
    const work = this._work(["used", "waiting"], "readwrite"),
      used = work.objectStore("used");
    /** @type {Use | undefined} */
    const known = await got(used.get([event, ticket]));
    if (known?.out) return false;
    used.put({ ...known, ...leaving, event, ticket, mine: true, out: leaving.at });
    if (wait) work.objectStore("waiting").put(/** @type {Waiting} */ ({ ...leaving, event, ticket, way: "out" }));
    await done(work);
    return true;
  }

  /** @param {string} event @param {string} ticket @returns {Promise<Use | undefined>} */
  use(event, ticket) {
    return got(this._work(["used"]).objectStore("used").get([event, ticket]));
  }

  /** Our own newest scan of a ticket that the server has not heard of yet. @param {string} event @param {string} ticket @returns {Promise<Use | null>} */
  async unsent(event, ticket) {
    const use = await this.use(event, ticket);
    if (!use?.mine) return null;
    return (await got(this._work(["waiting"]).objectStore("waiting").getKey(use.scan))) === undefined ? null : use;
  }

  /** Take an admission of ours back; whether it was still waiting. @param {string} event @param {string} ticket @param {string} scan */
  async undo(event, ticket, scan) {
    const work = this._work(["used", "waiting"], "readwrite"),
      used = work.objectStore("used");
    const waited = (await got(work.objectStore("waiting").getKey(scan))) !== undefined;
    work.objectStore("waiting").delete(scan);
    if ((await got(used.get([event, ticket])))?.scan === scan) used.delete([event, ticket]);
    await done(work);
    return waited;
  }

  /** What other gates let in, a few at a time so that a scan need not wait; those of ours that one of them let in too.
   * `whole`: the list is complete, so what it no longer has was taken back. `again`: people may leave and come back; the
   * server tells of those who were let in twice then.
   * @param {string} event @param {(Use & {way?: Way})[]} uses @param {boolean} whole @param {boolean} [again] @returns {Promise<[Use, Use][]>} */
  async learn(event, uses, whole, again = false) {
    /** @type {[Use, Use][]} */
    const both = [];
    for (let at = 0; at < uses.length; at += CHUNK) {
      const some = uses.slice(at, at + CHUNK),
        work = this._work(["used"], "readwrite"),
        used = work.objectStore("used");
      const known = await Promise.all(some.map((use) => got(used.get([event, use.ticket]))));
      /** @type {Map<string, Use>} as this part of the list has changed it */
      const now = new Map();
      some.forEach(({ way, ...use }, n) => {
        /** @type {Use | undefined} */
        const was = now.get(use.ticket) ?? known[n],
          next = !was ? (way === "out" ? { ...use, out: use.at } : use) : again ? follow(was, use, way) : null;
        if (next) {
          used.put(next);
          now.set(use.ticket, next);
        } else if (!again && was?.mine && was.scan !== use.scan) both.push([was, use]);
      });
      await done(work);
    }
    if (whole) await this._forgetBut(event, new Set(uses.map((use) => use.scan)));
    return both;
  }

  /** @param {string} event @param {Set<string>} scans */
  async _forgetBut(event, scans) {
    const range = IDBKeyRange.bound([event, ""], [event, "\uffff"]);
    /** @type {Use[]} */
    const all = await got(this._work(["used"]).objectStore("used").getAll(range));
    const work = this._work(["used"], "readwrite");
    for (const one of all) if (!one.mine && !scans.has(one.scan)) work.objectStore("used").delete([event, one.ticket]);
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
   * @param {string} here @param {number} before_ms */
  async prune(here, before_ms) {
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
