// @ts-check
/** Keeps a SeatModel true: server-sent changes, polling when there is no stream, a new snapshot whenever in doubt.
 *
 * A change that is old is dropped; one that does not follow, or is damaged, leads to a new snapshot. Changes that arrive
 * while a snapshot is on its way are kept and applied after it. Silence, a long sleep and a return to the tab reopen the
 * stream; every now and then all states are compared with a snapshot, in case a damaged change looked like a good one. */
const SILENT_MS = 20_000,
  TICK_MS = 2_500,
  SLEPT_MS = 12_000,
  AUDIT_MS = 90_000,
  POLL_MS = 2_000,
  MAX_KEPT = 500,
  STREAM_AGAIN = 15;

/** @typedef {"live" | "polling" | "offline"} Mode */
/** @typedef {{change: (seats: number[]) => void, mode: (mode: Mode) => void}} Told */

export class SeatFeed {
  #stopped = false;
  #fails = 0;
  #heard = 0;
  #ticked = 0;
  #audited = 0;
  #polls = 0;
  #asking = false;
  #again = false;
  #timer = 0;
  #every = 0;
  /** @type {EventSource | null} */ #source = null;
  /** @type {string[]} */ #kept = [];
  /** @param {import("./model.js").SeatModel} model @param {string} base `/v1/events/…` @param {Told} told */
  constructor(model, base, told) {
    this.model = model;
    this.base = base;
    this.told = told;
    this.resyncs = 0;
  }

  start() {
    this.#heard = this.#ticked = this.#audited = Date.now();
    this.#open();
    this.#every = window.setInterval(() => this.#tick(), TICK_MS);
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.#wake();
    });
    addEventListener("online", () => this.#wake());
    addEventListener("pageshow", (e) => {
      if (e.persisted) this.#wake();
    });
  }
  stop() {
    this.#stopped = true;
    this.#close();
    clearInterval(this.#every);
  }

  #close() {
    this.#source?.close();
    this.#source = null;
    clearTimeout(this.#timer);
    this.#timer = 0;
  }
  get #after() {
    return `after=${this.model.epoch}-${this.model.seq}`;
  }

  #open() {
    if (this.#stopped) return;
    this.#close();
    this.#heard = Date.now();
    const source = (this.#source = new EventSource(`${this.base}/seats/stream?${this.#after}`));
    source.onopen = () => {
      this.#fails = 0;
      this.told.mode("live");
    };
    source.addEventListener("d", (e) => {
      this.#heard = Date.now();
      this.take(/** @type {MessageEvent} */ (e).data);
    });
    source.addEventListener("reset", () => {
      this.#heard = Date.now();
      this.resync();
    });
    source.addEventListener("hb", () => {
      this.#heard = Date.now();
    });
    source.onerror = () => {
      this.#close();
      if (++this.#fails >= 3) {
        this.#polls = 0;
        this.#poll();
        return;
      }
      this.told.mode("offline");
      this.#timer = window.setTimeout(
        () => this.#open(),
        Math.min(15_000, 300 * 2 ** this.#fails) * (0.5 + Math.random())
      );
    };
  }

  /** One line of the stream: `<epoch> <prev> <seq> <frame>`. @param {string} line */
  take(line) {
    if (this.#asking) {
      if (this.#kept.push(line) > MAX_KEPT) {
        this.#kept = [];
        this.#again = true;
      }
      return;
    }
    const [epoch, prev, seq, frame] = line.split(" "),
      { model } = this;
    if (Number(epoch) === model.epoch && Number(seq) <= model.seq) return;
    if (Number(epoch) !== model.epoch || Number(prev) !== model.seq || !(Number(seq) > Number(prev))) {
      this.resync();
      return;
    }
    try {
      const changed = model.applyFrame(frame ?? "");
      model.seq = Number(seq);
      if (changed.length) this.told.change(changed);
    } catch {
      this.resync();
    }
  }

  /** Fetch all states anew; one at a time, once more if it was asked for meanwhile. */
  async resync() {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    this.resyncs++;
    for (let tries = 0; tries < 8 && !this.#stopped; tries++) {
      this.#again = false;
      try {
        const answer = await fetch(`${this.base}/seats.bin`, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const changed = this.model.applySnapshot(await answer.arrayBuffer());
        this.#audited = Date.now();
        if (changed.length) this.told.change(changed);
        if (!this.#again) break;
      } catch {
        this.told.mode("offline");
        await new Promise((go) => setTimeout(go, Math.min(10_000, 300 * 2 ** tries) * (0.5 + Math.random())));
      }
    }
    this.#asking = false;
    const kept = this.#kept;
    this.#kept = [];
    for (const line of kept) this.take(line);
  }

  async #poll() {
    if (this.#stopped || this.#source) return;
    let wait_ms = POLL_MS;
    try {
      const answer = await fetch(`${this.base}/seats/poll?${this.#after}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      wait_ms = Math.max(500, 1000 * Number(answer.headers.get("retry-after")) || POLL_MS);
      this.#heard = Date.now();
      this.told.mode("polling");
      for (const event of (await answer.text()).split("\n\n")) {
        const type = /^event: (\w+)/m.exec(event)?.[1],
          line = /^data: ?(.*)$/m.exec(event)?.[1] ?? "";
        if (type === "d") this.take(line);
        else if (type === "reset") await this.resync();
      }
    } catch {
      this.told.mode("offline");
      wait_ms = 4_000;
    }
    if (++this.#polls % STREAM_AGAIN === 0) {
      this.#fails = 1;
      this.#open();
      return;
    }
    this.#timer = window.setTimeout(() => this.#poll(), wait_ms * (0.8 + Math.random() * 0.4));
  }

  #tick() {
    const now = Date.now(),
      slept = now - this.#ticked > SLEPT_MS;
    this.#ticked = now;
    if (slept) this.#wake();
    else if (this.#source && now - this.#heard > SILENT_MS) {
      this.#fails++;
      this.#open();
    } else if (!document.hidden && now - this.#audited > AUDIT_MS * (0.8 + Math.random() * 0.4)) {
      this.#audited = now;
      this.resync();
    }
  }

  /** After a sleep, a lost connection or a look elsewhere: begin anew. */
  #wake() {
    this.#fails = 0;
    this.#polls = 0;
    this.#open();
    this.resync();
  }
}
