// @ts-check
/** What a gate can decide by itself: the twin of `Gate.verify` in `boxoffice/gate/gate_check.py`, held equal by a test.
 *
 * Verdicts have the API's names. Nothing before the signature can accept, so what is refused early was lost anyway.
 * A browser without Ed25519 verifies nothing and therefore admits nobody by itself (`canVerify`). */
import { eventHash, listText, read, rotatingFits, unhex } from "./codes.js";

/** @typedef {{event_id: string, name: string, keys: string[], revocations: RevocationList, seats: string[], rotating_secret: string, types?: Record<string, number[]>, reentry?: boolean, disputed?: string[], block_disputed?: boolean}} Bundle */
/** @typedef {{event_id: string, at_us: number, ids: string[], kid: string, signature: string}} RevocationList */
/** @typedef {"ok" | "duplicate" | "revoked" | "wrong_event" | "forged" | "unreadable" | "old_code" | "replaced" | "disputed" | "unsure"} Verdict */
/** @typedef {{verdict: Verdict, ticket: import("./codes.js").ReadTicket | null}} Verified */

const ED25519 = { name: "Ed25519" };

/** Whether this browser can verify tickets without a network. */
export async function canVerify() {
  try {
    // RFC 8032, the first test: its public key is a point like any other
    await crypto.subtle.importKey(
      "raw",
      unhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
      ED25519,
      false,
      ["verify"]
    );
    return true;
  } catch {
    return false;
  }
}

/** One event's keys and its dead tickets. */
export class Gate {
  /** @param {Bundle} bundle @param {Map<string, CryptoKey>} keys */
  constructor(bundle, keys) {
    this.bundle = bundle;
    this._keys = keys;
    this._event = eventHash(bundle.event_id);
    this._secret = unhex(bundle.rotating_secret);
    /** @type {Set<string>} */
    this.revoked = new Set();
    /** Tickets whose money is disputed, as of this bundle. */
    this.disputed = new Set(bundle.disputed ?? []);
    /** @type {Map<number, string>} */
    this._types = new Map();
    for (const [name, seats] of Object.entries(bundle.types ?? {}))
      for (const seat of seats) this._types.set(seat, name);
  }

  /** A gate with this bundle; throws when its revocation list is not signed for the event. @param {Bundle} bundle */
  static async opened(bundle) {
    /** @type {Map<string, CryptoKey>} */
    const keys = new Map();
    for (const one of bundle.keys) {
      const raw = unhex(one),
        kid = new Uint8Array(await crypto.subtle.digest("SHA-256", raw)).subarray(0, 4);
      keys.set(
        Array.from(kid, (byte) => byte.toString(16).padStart(2, "0")).join(""),
        await crypto.subtle.importKey("raw", raw, ED25519, false, ["verify"])
      );
    }
    const gate = new Gate(bundle, keys);
    if (!(await gate.revoke(bundle.revocations)))
      throw new Error("this bundle's revocation list is not signed for its event");
    return gate;
  }

  /** Take in a newer revocation list; false when none of our keys signed it for this event. @param {RevocationList} list */
  async revoke(list) {
    if (
      list.event_id !== this.bundle.event_id ||
      !(await this._signed(list.kid, unhex(list.signature), listText(list)))
    )
      return false;
    for (const id of list.ids) this.revoked.add(id);
    return true;
  }

  /** @param {string} kid @param {Uint8Array<ArrayBuffer>} signature @param {Uint8Array<ArrayBuffer>} message */
  async _signed(kid, signature, message) {
    const key = this._keys.get(kid);
    return key !== undefined && crypto.subtle.verify(ED25519, key, signature, message);
  }

  /** Whether the code is a real, live ticket of this event; no memory of earlier scans is asked.
   * @param {string} code @param {number} now_us @returns {Promise<Verified>} */
  async verify(code, now_us) {
    const ticket = read(code);
    if (!ticket) return { verdict: "unreadable", ticket: null };
    if (!this._keys.has(ticket.kid)) return { verdict: "forged", ticket: null };
    if (ticket.event !== this._event) return { verdict: "wrong_event", ticket: null };
    if (this.revoked.has(ticket.id)) return { verdict: "revoked", ticket };
    if (!(await this._signed(ticket.kid, ticket.signature, ticket.signed))) return { verdict: "forged", ticket: null };
    if (this.blocks(ticket.id)) return { verdict: "disputed", ticket };
    if (!ticket.rotating) return ticket.shown ? { verdict: "unreadable", ticket } : { verdict: "ok", ticket };
    return { verdict: (await rotatingFits(ticket, this._secret, now_us)) ? "ok" : "old_code", ticket };
  }

  /** Whether the event keeps out a ticket because its money is disputed. @param {string} id */
  blocks(id) {
    return (this.bundle.block_disputed ?? false) && this.disputed.has(id);
  }

  /** @param {number} index */
  seat(index) {
    return this.bundle.seats[index] ?? "";
  }

  /** The ticket type of a seat, if it was sold before the bundle was made. @param {number} index */
  type(index) {
    return this._types.get(index) ?? "";
  }
}
