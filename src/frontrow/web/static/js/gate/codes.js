// @ts-check
/** Ticket codes, taken apart without a network: the twin of `boxoffice/tickets/ticket_codes.py`, held equal by a test.
 *
 * FR1 + base32( kind 1 | key id 4 | event 8 | ticket 16 | seat 3 | fence 6 | signature 64 | check 3 )
 * and, on a screen with a rotating code, `.` and 8 more characters that change every 30 s. */
import { blake2b } from "./blake2b.js";

const PREFIX = "FR1",
  VERSION = 0x10,
  ROTATING = 0x01,
  BODY = 38,
  SIGNED = BODY + 64,
  CHECK = 3;
export const CODE_CHARS = PREFIX.length + 168;
const MAC_CHARS = 8,
  FULL_CHARS = CODE_CHARS + 1 + MAC_CHARS;
const STEP_US = 30_000_000,
  STEPS_TOLERATED = 1;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
  ID_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
  ID_CHARS = 26;
const utf8 = new TextEncoder();
const DOMAIN = utf8.encode("frontrow ticket 1\0"),
  LIST_DOMAIN = utf8.encode("frontrow revocations 1\0");

/** @typedef {{kid: string, event: string, id: string, short: Uint8Array<ArrayBuffer>, seat: number, fence: number, rotating: boolean, shown: string, signed: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>}} ReadTicket */

/** As people and hand scanners give it: spaces and small letters do not matter. @param {string} text */
export const plain = (text) => text.replace(/\s+/g, "").toUpperCase();

/** @param {Uint8Array} bytes */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text */
export const unhex = (text) =>
  Uint8Array.from({ length: text.length >> 1 }, (_, n) => parseInt(text.slice(2 * n, 2 * n + 2), 16));

/** An event as codes name it. @param {string} id */
export const eventHash = (id) => hex(blake2b(utf8.encode(id), 8));

/** @param {string} text @returns {Uint8Array<ArrayBuffer> | null} */
function unbase32(text) {
  const bytes = new Uint8Array((text.length * 5) >> 3);
  let bits = 0,
    held = 0,
    at = 0;
  for (const letter of text) {
    const value = LETTERS.indexOf(letter);
    if (value < 0) return null;
    held = ((held << 5) | value) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (held >> bits) & 0xff;
    }
  }
  return bytes;
}

/** @param {Uint8Array} bytes five of them */
function base32(bytes) {
  const number = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return Array.from({ length: 8 }, (_, n) => LETTERS[Number((number >> BigInt(35 - 5 * n)) & 31n)]).join("");
}

/** @param {Uint8Array} short */
function ticketId(short) {
  const number = short.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return `tkt_${Array.from({ length: ID_CHARS }, (_, n) => ID_LETTERS[Number((number >> BigInt(5 * (ID_CHARS - 1 - n))) & 31n)]).join("")}`;
}

/** @param {Uint8Array} first @param {Uint8Array} second */
function joined(first, second) {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

/** @param {Uint8Array} bytes */
const whole = (bytes) => bytes.reduce((sum, byte) => sum * 256 + byte, 0);

/** A code's fields, which mean nothing before the signature is verified; null when it is not exactly one code.
 * @param {string} code @returns {ReadTicket | null} */
export function read(code) {
  if ((code.length !== CODE_CHARS && code.length !== FULL_CHARS) || !code.startsWith(PREFIX)) return null;
  if (code.length === FULL_CHARS && code[CODE_CHARS] !== ".") return null;
  const raw = unbase32(code.slice(PREFIX.length, CODE_CHARS));
  if (!raw || (raw[0] & ~ROTATING) !== VERSION) return null;
  const check = blake2b(raw.subarray(0, SIGNED), CHECK);
  if (check.some((byte, n) => byte !== raw[SIGNED + n])) return null;
  const short = raw.slice(13, 29);
  return {
    kid: hex(raw.subarray(1, 5)),
    event: hex(raw.subarray(5, 13)),
    id: ticketId(short),
    short,
    seat: whole(raw.subarray(29, 32)),
    fence: whole(raw.subarray(32, BODY)),
    rotating: Boolean(raw[0] & ROTATING),
    shown: code.slice(CODE_CHARS + 1),
    signed: joined(DOMAIN, raw.subarray(0, BODY)),
    signature: raw.slice(BODY, SIGNED)
  };
}

/** What the signature of a revocation list covers. @param {{event_id: string, at_us: number, ids: string[]}} list */
export const listText = (list) =>
  joined(LIST_DOMAIN, utf8.encode(JSON.stringify([list.event_id, list.at_us, list.ids])));

/** @param {Uint8Array<ArrayBuffer>} key @param {Uint8Array<ArrayBuffer>} message */
async function mac(key, message) {
  const made = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, message));
}

/** Whether a ticket with a rotating code shows the one of now, or of a step that clocks may be apart.
 * @param {ReadTicket} ticket @param {Uint8Array<ArrayBuffer>} event_secret @param {number} now_us */
export async function rotatingFits(ticket, event_secret, now_us) {
  const secret = await mac(event_secret, ticket.short),
    step = Math.floor(now_us / STEP_US);
  for (let near = step - STEPS_TOLERATED; near <= step + STEPS_TOLERATED; near++) {
    const moment = new DataView(new ArrayBuffer(8));
    moment.setBigUint64(0, BigInt(Math.max(near, 0)));
    if (base32((await mac(secret, new Uint8Array(moment.buffer))).subarray(0, 5)) === ticket.shown) return true;
  }
  return false;
}

/** A ticket's number as people type it from paper: `tkt_` may be missing, O and I are read as 0 and 1; else null.
 * @param {string} text */
export function ticketNumber(text) {
  const letters = plain(text)
    .replace(/^TKT_?/, "")
    .replaceAll("O", "0")
    .replaceAll(/[IL]/g, "1");
  return letters.length === ID_CHARS && Array.from(letters).every((letter) => ID_LETTERS.includes(letter))
    ? `tkt_${letters}`
    : null;
}
