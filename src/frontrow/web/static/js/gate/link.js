// @ts-check
/** The line to the server: each request has a deadline; knows since when the line is down, and how far this clock is off. */
const DEADLINE_MS = 4_000,
  TOLERATED_MS = 1_500,
  SKEW_KEY = "frontrow-door-skew_ms";

/** @typedef {{status: number, body: any, tag: string}} Answer */

export class Link extends EventTarget {
  /** @param {string} event @param {string} csrf */
  constructor(event, csrf) {
    super();
    this._base = `/v1/door/events/${encodeURIComponent(event)}`;
    this._csrf = csrf;
    /** @type {number | null} since when there is no line */
    this.down_ms = navigator.onLine ? null : Date.now();
    this.signed_out = false;
    this._skew_ms = Number(localStorage.getItem(SKEW_KEY)) || 0;
  }

  get up() {
    return this.down_ms === null;
  }

  /** The server's time in milliseconds, as far as we know: a page from the cache brings none along. */
  now_ms() {
    return Date.now() + this._skew_ms;
  }

  /** @param {string} path @param {{body?: unknown, tag?: string, deadline_ms?: number}} [how] @returns {Promise<Answer>} status 0: no line */
  async ask(path, how = {}) {
    /** @type {Record<string, string>} */
    const headers = { accept: "application/json" };
    if (how.body !== undefined)
      Object.assign(headers, { "content-type": "application/json", "x-csrf-token": this._csrf });
    if (how.tag) headers["if-none-match"] = how.tag;
    const asked_ms = Date.now();
    try {
      const sent = await fetch(this._base + path, {
        method: how.body === undefined ? "GET" : "POST",
        cache: "no-store",
        credentials: "same-origin",
        headers,
        body: how.body === undefined ? undefined : JSON.stringify(how.body),
        signal: AbortSignal.timeout(how.deadline_ms ?? DEADLINE_MS)
      });
      const body = sent.status === 304 ? null : await sent.json().catch(() => null);
      this._heard(sent, asked_ms);
      return { status: sent.status, body, tag: sent.headers.get("etag") ?? "" };
    } catch {
      this._tell(this.down_ms ?? Date.now(), this.signed_out);
      return { status: 0, body: null, tag: "" };
    }
  }

  /** @param {Response} sent @param {number} asked_ms when the request left */
  _heard(sent, asked_ms) {
    const theirs_ms = Date.parse(sent.headers.get("date") ?? "");
    if (Number.isFinite(theirs_ms)) {
      this._skew_ms = clockError(theirs_ms, asked_ms, Date.now());
      localStorage.setItem(SKEW_KEY, String(this._skew_ms));
    }
    const refused = sent.status === 401 || sent.status === 403;
    this._tell(sent.status >= 500 ? (this.down_ms ?? Date.now()) : null, refused);
  }

  /** The browser noticed before we did. */
  lost() {
    this._tell(this.down_ms ?? Date.now(), this.signed_out);
  }

  /** @param {number | null} down_ms @param {boolean} signed_out */
  _tell(down_ms, signed_out) {
    if (down_ms === this.down_ms && signed_out === this.signed_out) return;
    this.down_ms = down_ms;
    this.signed_out = signed_out;
    this.dispatchEvent(new Event("change"));
  }
}

/** How far the server's clock is ahead of ours. Its time was read at any moment between the request and the answer, and
 * tells whole seconds: an answer that took long proves nothing about the clocks.
 * @param {number} theirs_ms @param {number} asked_ms @param {number} answered_ms */
export function clockError(theirs_ms, asked_ms, answered_ms) {
  const least_ms = theirs_ms - answered_ms,
    most_ms = theirs_ms + 1_000 - asked_ms;
  if (least_ms < TOLERATED_MS && most_ms > -TOLERATED_MS) return 0;
  return Math.round((least_ms + most_ms) / 2);
}
