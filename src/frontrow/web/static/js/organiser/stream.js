// @ts-check
/** Follows the live figures: server-sent events, polling when there is no stream, and says how fresh they are.
 *
 * Frames come every second. After STALE_MS without one the figures are old, whatever the connection says; after SILENT_MS
 * the stream is opened anew. Three failures lead to polling, which tries the stream again now and then. */
import { ask } from "../dom.js";
const STALE_MS = 5_000,
  SILENT_MS = 15_000,
  TICK_MS = 1_000,
  POLL_MS = 3_000,
  STREAM_AGAIN = 3,
  LONGEST_MS = 15_000,
  OUT_MS = 6_000;

/** @typedef {"live" | "polling" | "offline" | "signed-out"} Mode */
/** @typedef {{frame: (frame: any) => void, mode: (mode: Mode, old: boolean) => void}} Told */

export class FiguresStream {
  #fails = 0;
  #heard = 0;
  #polls = 0;
  #timer = 0;
  #opened = 0;
  /** @type {EventSource | null} */ #source = null;
  /** @type {Mode} */ #mode = "offline";
  /** @param {string} base `/v1/organiser/events/…/figures` @param {Told} told */
  constructor(base, told) {
    this.base = base;
    this.told = told;
  }

  start() {
    this.#heard = Date.now();
    this.#open();
    setInterval(() => this.#tick(), TICK_MS);
    addEventListener("online", () => this.#open());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && Date.now() - this.#heard > STALE_MS) this.#open();
    });
  }

  #close() {
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#timer);
  }
  /** @param {Mode} mode */
  #now(mode) {
    this.#mode = mode;
    this.told.mode(mode, Date.now() - this.#heard > STALE_MS);
  }

  #open() {
    this.#close();
    this.#opened = Date.now();
    const source = (this.#source = new EventSource(`${this.base}/live`));
    source.addEventListener("figures", (e) => {
      this.#fails = 0;
      this.#took(JSON.parse(/** @type {MessageEvent} */ (e).data), "live");
    });
    source.onerror = () => {
      this.#close();
      if (++this.#fails >= 3) {
        this.#polls = 0;
        this.#poll();
        return;
      }
      this.#now("offline");
      this.#timer = window.setTimeout(
        () => this.#open(),
        Math.min(LONGEST_MS, 400 * 2 ** this.#fails) * (0.5 + Math.random())
      );
    };
  }

  /** @param {any} frame @param {Mode} mode */
  #took(frame, mode) {
    this.#heard = Date.now();
    this.told.frame(frame);
    this.#now(mode);
  }

  async #poll() {
    const { ok, status, body, after_s } = await ask(`${this.base}/poll`);
    const out = status === 401 || status === 403; // until somebody signs in in another tab
    if (ok) this.#took(body, "polling");
    else this.#now(out ? "signed-out" : "offline");
    if (ok && ++this.#polls >= STREAM_AGAIN) {
      this.#fails = 2;
      this.#open();
      return;
    }
    const wait_ms = out ? OUT_MS : ok ? POLL_MS : Math.min(LONGEST_MS, POLL_MS * ++this.#polls);
    this.#timer = window.setTimeout(
      () => this.#poll(),
      Math.max(wait_ms, after_s * 1000) * (0.8 + Math.random() * 0.4)
    );
  }

  #tick() {
    const now = Date.now(),
      silent = now - this.#heard;
    if (silent > STALE_MS) this.told.mode(this.#mode === "live" ? "offline" : this.#mode, true);
    if (this.#source && silent > SILENT_MS && now - this.#opened > SILENT_MS) this.#open();
  }
}
