// The connector for every JavaScript runtime with WebCrypto and fetch. docs/connector.md is its specification, and
// connectors/vectors.json its tests. `decide` is pure; `Connector` talks to the room. express.mjs, worker.mjs and
// snippet.mjs put it in front of a shop.
import { readRules, whyOpen } from "./rules.mjs";

const MAX_PASS_CHARS = 4096, MAX_COOKIE_CHARS = 16384, MAX_PAGE_CHARS = 1024, MAX_ANSWER_CHARS = 4194304;
const AHEAD_S = 60, PASS_COOKIE_S = 86400, BIND_COOKIE_S = 604800, KEPT_COOKIE_S = 30, TIMEOUT_MS = 2000, RULES_EVERY_MS = 5000;
const END_PATH = "/.frontrow/end";
const PLAIN = /^\/[A-Za-z0-9._~!$&'()*+,=:@/-]*$/;
const PAGE = /^(\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(\?[!$-;=?-[\]-~]*)?$/;
const HIDDEN = /%(?:[01].|2f|5c|7f)/i;
const TOKENS = /([?&]frontrow=[A-Za-z0-9_-]*)+$/;
const ORIGIN = /^https?:\/\/[a-z0-9.-]+(:[0-9]+)?$/;
const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const bytesOf = (text) => new TextEncoder().encode(text);
const hasDots = (path) => path.split("/").some((part) => part === "." || part === "..");

/** Check a setup: {room, event, shop, open_paths, rules_key}. Throws an Error that says what is wrong. */
export function checkSetup(setup) {
  if (!ORIGIN.test(setup.shop)) throw new Error(`shop is an origin like https://shop.example.org, not ${setup.shop}`);
  if (!/^https?:\/\/.*[^/]$/.test(setup.room)) throw new Error(`room is like https://room.example.org/v1/events/aurora/room, not ${setup.room}`);
  for (const path of setup.open_paths ?? []) if (!isOpen(setup, path)) throw new Error(`open path ${path} must be written plainly, like /static/`);
  return { open_paths: [], ...setup };
}

const isSecure = (setup) => setup.shop.startsWith("https:");
const hostOf = (setup) => setup.shop.split("://")[1].split(":")[0].replace(/\.+$/, "");
export const cookieName = (setup, kind) => (isSecure(setup) ? `__Host-frontrow-${kind}-${setup.event}` : `frontrow_${kind}_${setup.event}`);
const cookieLine = (setup, kind, value, lifeS) =>
  `${cookieName(setup, kind)}=${value}; Path=/; Max-Age=${lifeS}; HttpOnly; SameSite=Lax${isSecure(setup) ? "; Secure" : ""}`;

/** What to do with a request. `target`: path and query as the client sent them; `headers`: by lower-case name; `address`:
 * the client's, as far as the shop knows it. */
export async function decide(setup, known, method, target, headers, nowS, fresh, address = "") {
  const path = target.split("?", 1)[0];
  if (isOpen(setup, path)) return { action: "open" };
  if (known.rules && path !== END_PATH) {
    const why = await whyOpen(known.rules, hostOf(setup), method, target, headers, address, nowS);
    if (why) return { action: "open", code: why === "open" ? "" : why };
  }
  const page = target.replace(TOKENS, "");
  const token = method === "GET" ? target.slice(page.length).split("=").at(-1) : "";
  const cookies = (headers.cookie ?? "").slice(0, MAX_COOKIE_CHARS);
  const header = (headers["frontrow-pass"] ?? "").replace(/^[ \t]+|[ \t]+$/g, "");
  const given = header || readCookie(cookies, cookieName(setup, "pass"));
  const { claims, code } = given ? await readPass(setup, known, given, nowS) : { code: "pass_required" };
  if (path === END_PATH && method === "POST") {
    if (headers.origin !== setup.shop && headers["sec-fetch-site"] !== "same-origin") return { action: "refuse", code: "cross_site" };
    return { action: "end", given: code ? "" : given, cookies: ["pass", "kept"].map((kind) => cookieLine(setup, kind, "", 0)) };
  }
  if (!code && page.length < target.length && method === "GET") return { action: "strip", location: wanted(page) };
  if (!code) {
    const due = !header && (claims.exp - nowS) * 3 < claims.exp - claims.iat;
    return { action: "pass", person: claims.sub, visit: visitOf(claims), given, renew: due && !readCookie(cookies, cookieName(setup, "kept")) };
  }
  const kept = readCookie(cookies, cookieName(setup, "bind")), verifier = /^[A-Za-z0-9_-]{43}$/.test(kept) ? kept : "";
  if (token && verifier) return { action: "exchange", code, token, verifier, page: wanted(page) };
  if (!["GET", "HEAD"].includes(method) || !(headers.accept ?? "").includes("text/html")) return { action: "refuse", code };
  return toRoom(setup, page, verifier, fresh, code);
}

/** To the room, and back to `page` afterwards. A browser without a verifier gets `fresh`. */
async function toRoom(setup, page, verifier, fresh, code) {
  const bind = b64(await crypto.subtle.digest("SHA-256", bytesOf(verifier || fresh)));
  const back = encodeURIComponent(setup.shop + wanted(page)).replace(/[!'()*]/g, (char) => "%" + char.charCodeAt(0).toString(16).toUpperCase());
  const cookies = verifier ? [] : [cookieLine(setup, "bind", fresh, BIND_COOKIE_S)];
  return { action: "room", code, location: `${setup.room}/?bind=${bind}&return=${back}`, cookies };
}

/** The page to lead to: never another site, whatever was in the address. */
function wanted(page) {
  const path = page.split("?", 1)[0];
  return isPage(page) ? page : isPage(path) ? path : "/";
}

function isOpen(setup, path) {
  if (!PLAIN.test(path) || path.includes("//") || hasDots(path)) return false;
  return setup.open_paths.some((one) => path === one || (one.endsWith("/") && path.startsWith(one)));
}

function isPage(text) {
  const found = text.length <= MAX_PAGE_CHARS && PAGE.exec(text);
  return !!found && !found[1].includes("//") && !HIDDEN.test(found[1]) && !hasDots(found[1]);
}

function readCookie(header, name) {
  for (const part of header.split(";")) {
    const pair = part.replace(/^[ \t]+|[ \t]+$/g, ""), at = pair.indexOf("=");
    if (at > 0 && pair.slice(0, at) === name && at < pair.length - 1) return pair.slice(at + 1);
  }
  return "";
}

const visitOf = (claims) => [claims.aud, ...claims.plc].join(".");

async function readPass(setup, known, text, nowS) {
  let claims;
  try {
    claims = await verified(known, text);
  } catch (error) {
    return { code: error === KEY_UNKNOWN ? "key_unknown" : "pass_invalid" };
  }
  if (claims.shop !== setup.shop || (claims.aud !== setup.event && !known.events.has(claims.aud))) return { code: "pass_foreign" };
  if (nowS >= claims.exp || claims.iat > nowS + AHEAD_S) return { code: "pass_expired" };
  return known.ended.has(visitOf(claims)) ? { code: "pass_ended" } : { claims, code: "" };
}

const KEY_UNKNOWN = new Error("key unknown"), INVALID = new Error("not a pass for a shop");
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

async function verified(known, text) {
  const parts = text.length <= MAX_PASS_CHARS ? text.split(".") : [];
  if (parts.length !== 3) throw INVALID;
  const [head, body, signature] = parts, header = readJson(head);
  if (!isObject(header) || Object.keys(header).sort().join() !== "alg,kid,typ" || header.alg !== "RS256" || header.typ !== "JWT") throw INVALID;
  const key = known.keys.get(String(header.kid)), raw = unb64(signature);
  if (!key) throw KEY_UNKNOWN;
  if (!(await crypto.subtle.verify(RSA, await key, raw, bytesOf(`${head}.${body}`)))) throw INVALID;
  const claims = readJson(body);
  if (!isObject(claims) || claims.iss !== "frontrow-room" || !Array.isArray(claims.plc)) throw INVALID;
  const numbers = [claims.exp, claims.iat, ...claims.plc];
  if (numbers.length !== 5 || !numbers.every(Number.isInteger)) throw INVALID;
  if (![claims.aud, claims.sub, claims.shop].every((one) => typeof one === "string")) throw INVALID;
  return claims;
}

const readJson = (text) => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(unb64(text)));
export const b64 = (raw) => btoa(String.fromCharCode(...new Uint8Array(raw))).replace(/[+/=]/g, (char) => ({ "+": "-", "/": "_" })[char] ?? "");

function unb64(text) {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw INVALID;
  const raw = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  if (b64(raw) !== text) throw INVALID;
  return raw;
}

/** What is known after another `connector` document of the room. */
export function learn(known, told) {
  const read = ({ n, e }) => crypto.subtle.importKey("jwk", { kty: "RSA", n, e, alg: "RS256" }, RSA, false, ["verify"]);
  const keys = new Map(told.keys.map((key) => [key.kid, known.keys.get(key.kid) ?? read(key)]));
  const before = known.mark && told.after === known.mark ? known.ended : [];
  const ended = new Map([...before].filter(([, untilS]) => untilS > told.now_s));
  for (const entry of told.ended) ended.set(entry.slice(0, entry.lastIndexOf(":")), +entry.slice(entry.lastIndexOf(":") + 1));
  return { keys, events: new Set(told.events), ended, mark: told.mark, rules: known.rules };
}

export const NOTHING = { keys: new Map(), events: new Set(), ended: new Map(), mark: "", rules: null };

/** Decides about requests, and talks to the room. `options`: follow_s, now, call. */
export class Connector {
  constructor(setup, options = {}) {
    this.setup = checkSetup(setup);
    this.known = NOTHING;
    this.followMs = 1000 * (options.follow_s ?? 2);
    this.now = options.now ?? Date.now;
    this.call = options.call ?? callRoom;
    this.askedMs = this.askedRulesMs = -Infinity;
    this.asking = null;
  }

  async look(method, target, headers, address) {
    const fresh = b64(crypto.getRandomValues(new Uint8Array(32)));
    return decide(this.setup, this.known, method, target, headers, Math.floor(this.now() / 1000), fresh, address);
  }

  /** `decide`, carried out: the action is then pass, open, strip, room, refuse, end or away. */
  async handle(method, target, headers, address = "") {
    await this.follow(this.followMs);
    let done = await this.look(method, target, headers, address);
    if (done.code === "key_unknown") {
      await this.follow(500);
      done = await this.look(method, target, headers, address);
    }
    if (done.action === "exchange") return this.exchange(done);
    if (done.action === "end") {
      const { status } = done.given ? await this.call(`${this.setup.room}/give-back`, "", { "Frontrow-Pass": done.given }) : { status: 200 };
      if (status !== 200) console.warn("frontrow: the room did not hear that a visit ended; it ends with its pass");
      return done;
    }
    if (done.code === "key_unknown" && !this.known.keys.size) return { action: "away" };
    if (!done.renew) return done;
    const { status, told } = await this.call(`${this.setup.room}/renew`, "", { "Frontrow-Pass": done.given });
    const line = status === 200 ? cookieLine(this.setup, "pass", told.pass, PASS_COOKIE_S) : cookieLine(this.setup, "kept", "1", KEPT_COOKIE_S);
    return { ...done, renew: false, cookies: [line], pass: status === 200 ? told.pass : undefined };
  }

  async exchange(asked) {
    const { status, told } = await this.call(`${this.setup.room}/exchange`, new URLSearchParams({ token: asked.token, verifier: asked.verifier }), {});
    if (status === 200) {
      this.askedMs = -Infinity; // its key may be new
      return { action: "strip", location: asked.page, cookies: [cookieLine(this.setup, "pass", told.pass, PASS_COOKIE_S)], pass: told.pass };
    }
    return status === 0 || status >= 500 ? { action: "away" } : toRoom(this.setup, asked.page, asked.verifier, "", "pass_required");
  }

  /** Ask the room for its keys and for the visits that ended, unless that was done just now. One caller asks, the others
   * go on; only the first keys are waited for. */
  async follow(maxAgeMs) {
    const nowMs = performance.now();
    const keysAreDue = nowMs - this.askedMs >= (this.known.keys.size ? maxAgeMs : 500);
    const rulesAreDue = !!this.setup.rules_key && nowMs - this.askedRulesMs >= (this.known.rules ? RULES_EVERY_MS : this.followMs);
    if ((keysAreDue || rulesAreDue) && !this.asking) {
      if (keysAreDue) this.askedMs = nowMs;
      if (rulesAreDue) this.askedRulesMs = nowMs;
      this.asking = this.ask(keysAreDue, rulesAreDue).finally(() => (this.asking = null));
      await this.asking;
    } else if (!this.known.keys.size) await this.asking;
  }

  async ask(keysAreDue, rulesAreDue) {
    if (rulesAreDue) await this.askRules();
    if (keysAreDue) await this.askKeys();
  }

  /** Read the rules of the room. Whatever goes wrong: the last ones stay in use, and the log says so. */
  async askRules() {
    const { status, told } = await this.call(`${this.setup.room}/rules`, null, { Authorization: `Bearer ${this.setup.rules_key}` });
    try {
      if (status !== 200) throw new Error(`status ${status}`);
      this.known = { ...this.known, rules: readRules(told, this.setup.event, Math.floor(this.now() / 1000)) };
    } catch (error) {
      console.warn(`frontrow: the rules cannot be read (${error.message}); ${this.known.rules ? "the last ones stay in use" : "everything but open_paths needs a pass"}`);
    }
  }

  async askKeys() {
    const { status, told } = await this.call(`${this.setup.room}/connector?after=${encodeURIComponent(this.known.mark)}`, null, {});
    if (status !== 200) return;
    this.known = learn(this.known, told);
    if (!told.complete) this.askedMs = -Infinity;
  }
}

/** Status and JSON of a call to the room; status 0 if it does not answer. */
async function callRoom(url, body, headers) {
  try {
    const init = body === null ? { headers } : { method: "POST", body, headers };
    const answer = await fetch(url, { ...init, redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answer.text();
    if (text.length > MAX_ANSWER_CHARS) throw new Error("the answer is too long");
    return { status: answer.status, told: JSON.parse(text) };
  } catch (error) {
    console.warn(`frontrow: the waiting room at ${url} does not answer: ${error}`);
    return { status: 0, told: {} };
  }
}

const AWAY = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>One moment</title><p>The waiting room does not answer. This page tries again by itself.';

/** Status, headers (pairs) and body of the answer; null if the shop answers. */
export function answerOf(done, setup) {
  const headers = [["cache-control", "no-store"], ["referrer-policy", "no-referrer"], ...(done.cookies ?? []).map((line) => ["set-cookie", line])];
  if (done.action === "pass" || done.action === "open") return null;
  if (done.action === "strip" || done.action === "room") return { status: 303, headers: [...headers, ["location", done.location]], body: "" };
  if (done.action === "end") return { status: 204, headers, body: null };
  if (done.action === "away") return { status: 503, headers: [...headers, ["retry-after", "2"], ["content-type", "text/html"]], body: AWAY };
  const status = ["cross_site", "pass_foreign"].includes(done.code) ? 403 : 401, title = done.code.replaceAll("_", " ");
  const problem = { type: `urn:frontrow:${done.code}`, title: title[0].toUpperCase() + title.slice(1), status, code: done.code, room: `${setup.room}/` };
  return { status, headers: [...headers, ["content-type", "application/problem+json"]], body: JSON.stringify(problem) };
}
