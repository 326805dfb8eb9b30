// @ts-check
/** The line to the server: each request has a deadline; knows since when the line is down, and how far this clock is off. */
const DEADLINE_MS = 4_000,
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
      this._heard(sent);
      return { status: sent.status, body, tag: sent.headers.get("etag") ?? "" };
    } catch {
      this._tell(this.down_ms ?? Date.now(), this.signed_out);
      return { status: 0, body: null, tag: "" };
    }
  }

  /** @param {Response} sent */
  _heard(sent) {
    const theirs_ms = Date.parse(sent.headers.get("date") ?? "");
    if (Number.isFinite(theirs_ms)) {
      const off_ms = theirs_ms + 500 - Date.now(); // the header tells whole seconds
      this._skew_ms = Math.abs(off_ms) < 2_000 ? 0 : off_ms;
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
