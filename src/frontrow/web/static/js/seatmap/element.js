// @ts-check
/** <fr-seatmap>: pointer, wheel, pinch and keyboard over SeatView. Fires "seat-pick", "section-pick", "tip" and speaks.
 * Whatever can be dragged can be clicked too (zoom buttons), and no target smaller than 22 px is acted upon by touch. */
import { say } from "../dom.js";
import { number, priced, t } from "../words.js";
import { COMPANION, FREE, HELD, RESTRICTED, STEP_FREE } from "./model.js";
import { SeatView } from "./view.js";

const FLY_MS = 320,
  MAX_ZOOM = 8,
  MOVED_PX = 6;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** What a seat is like, in words: section, row, seat, price, state. @param {import("./model.js").SeatInfo} seat */
export function describe(seat) {
  const state = seat.mine
    ? t("chosen by you")
    : seat.state === FREE
      ? t("free")
      : seat.state === HELD
        ? t("held by someone")
        : t("taken");
  const extras = [
    seat.flags & STEP_FREE ? t("step-free") : "",
    seat.flags & COMPANION ? t("companion seat") : "",
    seat.flags & RESTRICTED ? t("restricted view") : ""
  ].filter(Boolean);
  return [
    t("Section {section}, row {row}, seat {seat}", { section: seat.section.name, row: seat.row, seat: seat.number }),
    priced(seat.tier.price, seat.tier.fee ?? 0, seat.tier.cur),
    state,
    ...extras
  ].join(", ");
}

/** @param {import("./model.js").Section} one @param {import("./model.js").SeatModel} model */
export function priceRange(one, model) {
  const low = priceAt(one.low, model);
  return one.low === one.high ? low : `${low}–${priceAt(one.high, model)}`;
}
/** A price that a tier of this map has. @param {number} price @param {import("./model.js").SeatModel} model */
export function priceAt(price, model) {
  const tier = model.doc.tiers.find((/** @type {import("./model.js").Tier} */ one) => one.price === price);
  return priced(price, tier?.fee ?? 0, model.doc.tiers[0].cur);
}
/** @param {import("./model.js").Section} one @param {import("./model.js").SeatModel} model */
export function describeSection(one, model) {
  const price = priceRange(one, model);
  return t("Section {section}, {free} of {n} seats free, {price}", {
    section: one.name,
    free: number(one.free),
    n: number(one.n),
    price
  });
}

export class FrSeatmap extends HTMLElement {
  /** @type {import("./model.js").SeatModel} */ model = /** @type {any} */ (null);
  /** @type {SeatView} */ view = /** @type {any} */ (null);
  /** @type {Map<number, {x: number, y: number}>} */ #pointers = new Map();
  #moved = 0;
  #pinch = 0;
  #flight = 0;

  /** @param {import("./model.js").SeatModel} model @param {boolean} [heat] */
  start(model, heat = false) {
    this.model = model;
    const [base, over] = [document.createElement("canvas"), document.createElement("canvas")];
    for (const canvas of [base, over]) canvas.setAttribute("aria-hidden", "true");
    this.replaceChildren(base, over);
    const view = (this.view = new SeatView(base, over, model));
    view.options.heat = heat;
    view.resize();
    view.camera = view.fit();
    view.draw();
    new ResizeObserver(() => {
      const fits = Math.abs(view.camera.k - view.fit().k) < 1e-3;
      view.resize();
      if (fits) view.camera = view.fit();
      view.draw();
    }).observe(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      view.readTheme();
      view.draw();
    });
    this.#listen();
  }

  #listen() {
    this.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        const box = this.getBoundingClientRect();
        this.#zoomAt(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0018)), e.clientX - box.left, e.clientY - box.top);
      },
      { passive: false }
    );
    this.addEventListener("pointerdown", (e) => {
      this.setPointerCapture(e.pointerId);
      this.#pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      this.#moved = 0;
      this.#land();
    });
    this.addEventListener("pointermove", (e) => {
      if (this.#pointers.has(e.pointerId)) this.#drag(e);
      else this.#hover(e);
    });
    this.addEventListener("pointerup", (e) => this.#up(e));
    this.addEventListener("pointercancel", (e) => {
      this.#pointers.delete(e.pointerId);
      this.#pinch = 0;
    });
    this.addEventListener("pointerleave", () => {
      this.view.options.hover = -1;
      this.#tip(null);
      this.view.request();
    });
    this.addEventListener("keydown", (e) => {
      if (this.#key(e)) e.preventDefault();
    });
    this.addEventListener("focus", () => {
      if (this.view.options.focusSection < 0 && this.view.options.focus < 0)
        say(t("Arrow keys move, Enter opens or picks, Escape shows the whole venue."));
    });
  }

  /** @param {number} factor @param {number} sx @param {number} sy */
  #zoomAt(factor, sx, sy) {
    const { view } = this,
      k = Math.min(MAX_ZOOM, Math.max(view.fit().k * 0.9, view.camera.k * factor)),
      q = k / view.camera.k;
    view.camera = { k, x: sx - (sx - view.camera.x) * q, y: sy - (sy - view.camera.y) * q };
    this.#tip(null);
    view.request();
  }
  /** @param {number} factor */
  zoom(factor) {
    this.#zoomAt(factor, this.view.w / 2, this.view.h / 2);
  }
  fit() {
    this.#fly(this.view.fit());
  }
  /** Whether the camera is on its way by itself. */
  get flying() {
    return this.#flight !== 0;
  }
  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const { view } = this;
    view.camera = { ...view.camera, x: view.camera.x + dx, y: view.camera.y + dy };
    view.request();
  }

  #land() {
    cancelAnimationFrame(this.#flight);
    this.#flight = 0;
  }
  /** @param {import("./view.js").Camera} to */
  #fly(to) {
    const { view } = this,
      from = { ...view.camera },
      began = performance.now(),
      long = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : FLY_MS;
    this.#land();
    const middle = (/** @type {import("./view.js").Camera} */ c) => [
        (view.w / 2 - c.x) / c.k,
        (view.h / 2 - c.y) / c.k
      ],
      [ax, ay] = middle(from),
      [bx, by] = middle(to);
    const step = (/** @type {number} */ now) => {
      const part = long ? Math.min(1, (now - began) / long) : 1,
        eased = 1 - (1 - part) ** 3,
        k = from.k * (to.k / from.k) ** eased;
      view.camera = { k, x: view.w / 2 - (ax + (bx - ax) * eased) * k, y: view.h / 2 - (ay + (by - ay) * eased) * k };
      view.draw();
      this.#flight = part < 1 ? requestAnimationFrame(step) : 0;
    };
    step(performance.now());
  }

  /** @param {number} s */
  flyTo(s) {
    const { view } = this,
      b = this.model.sections[s].box,
      pad = 24;
    const k = Math.min(4.5, (view.w - 2 * pad) / (b[2] - b[0] + 20), (view.h - 2 * pad) / (b[3] - b[1] + 20));
    view.options.focusSection = s;
    this.#fly({ k, x: view.w / 2 - ((b[0] + b[2]) / 2) * k, y: view.h / 2 - ((b[1] + b[3]) / 2) * k });
  }

  /** @param {PointerEvent} e */
  #world(e) {
    const { camera } = this.view,
      box = this.getBoundingClientRect(),
      sx = e.clientX - box.left,
      sy = e.clientY - box.top;
    return { wx: (sx - camera.x) / camera.k, wy: (sy - camera.y) / camera.k };
  }

  /** @param {PointerEvent} e */
  #hover(e) {
    const { view, model } = this,
      { wx, wy } = this.#world(e),
      seat = view.showsSeats ? model.hit(wx, wy, 6) : -1,
      section = seat < 0 ? model.hitSection(wx, wy) : -1;
    if (seat === view.options.hover && section === view.options.focusSection) return;
    view.options.hover = seat;
    view.options.focusSection = section;
    if (seat >= 0)
      this.#tip({
        x: model.x[seat],
        y: model.y[seat],
        title: this.#seatTitle(seat),
        text: describe(model.seat(seat)).split(", ").slice(3).join(", ")
      });
    else if (section >= 0 && (!view.showsSeats || model.sections[section].area)) {
      const one = model.sections[section];
      this.#tip({
        x: one.cx,
        y: one.cy,
        title: one.name,
        text: describeSection(one, model).split(", ").slice(1).join(", ")
      });
    } else this.#tip(null);
    view.request();
  }
  /** @param {number} i */
  #seatTitle(i) {
    const s = this.model.seat(i);
    return `${s.section.name} · ${s.row} · ${s.number}`;
  }

  /** @param {{x: number, y: number, title: string, text: string} | null} about */
  #tip(about) {
    const { camera } = this.view;
    this.dispatchEvent(
      new CustomEvent("tip", {
        detail: about && { ...about, x: about.x * camera.k + camera.x, y: about.y * camera.k + camera.y }
      })
    );
  }

  /** @param {PointerEvent} e */
  #drag(e) {
    const at = /** @type {{x: number, y: number}} */ (this.#pointers.get(e.pointerId)),
      dx = e.clientX - at.x,
      dy = e.clientY - at.y;
    this.#moved += Math.abs(dx) + Math.abs(dy);
    at.x = e.clientX;
    at.y = e.clientY;
    if (this.#pointers.size === 2) {
      const [a, b] = [...this.#pointers.values()],
        apart = Math.hypot(a.x - b.x, a.y - b.y),
        box = this.getBoundingClientRect();
      if (this.#pinch) this.#zoomAt(apart / this.#pinch, (a.x + b.x) / 2 - box.left, (a.y + b.y) / 2 - box.top);
      this.#pinch = apart;
    } else if (this.#moved > 4) {
      this.#tip(null);
      this.pan(dx, dy);
    }
  }

  /** @param {PointerEvent} e */
  #up(e) {
    this.#pointers.delete(e.pointerId);
    this.#pinch = 0;
    if (this.#moved > MOVED_PX) return;
    const { view, model } = this,
      { wx, wy } = this.#world(e),
      section = model.hitSection(wx, wy),
      coarse = e.pointerType !== "mouse";
    if (section >= 0 && (!view.showsSeats || model.sections[section].area)) {
      this.flyTo(section);
      this.#open(section);
      return;
    }
    if (view.seatPx < (coarse ? 22 : 9)) {
      const k = (coarse ? 26 : 20) / 9;
      if (section >= 0) {
        this.#fly({ k, x: view.w / 2 - wx * k, y: view.h / 2 - wy * k });
        this.#open(section);
      }
      return;
    }
    const i = model.hit(wx, wy, 6);
    if (i >= 0) this.#pick(i);
  }
  /** @param {number} i */
  #pick(i) {
    this.view.options.focus = i;
    this.view.request();
    this.dispatchEvent(new CustomEvent("seat-pick", { detail: i }));
  }
  /** @param {number} s */
  #open(s) {
    this.dispatchEvent(new CustomEvent("section-pick", { detail: s }));
  }

  /** @param {KeyboardEvent} e @returns {boolean} whether the key was ours */
  #key(e) {
    const { view } = this,
      arrow = ARROWS[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return false;
    if (e.key === "+" || e.key === "=") this.zoom(1.5);
    else if (e.key === "-") this.zoom(1 / 1.5);
    else if (e.key === "0" || e.key === "Escape") {
      this.fit();
      view.options.focus = -1;
    } else if (arrow && e.shiftKey) this.pan(-arrow[0] * 80, -arrow[1] * 80);
    else if (arrow && view.options.focus >= 0) this.#stepSeat(arrow);
    else if (arrow) this.#stepSection(arrow);
    else if (e.key === "Enter" || e.key === " ") this.#enter();
    else return false;
    return true;
  }

  /** @param {[number, number]} arrow */
  #stepSection([dx, dy]) {
    const { view, model } = this,
      at =
        view.options.focusSection >= 0
          ? model.sections[view.options.focusSection]
          : { cx: model.doc.w / 2, cy: model.doc.h / 2 };
    let best = -1,
      least = Infinity;
    model.sections.forEach((one, s) => {
      const ax = one.cx - at.cx,
        ay = one.cy - at.cy,
        along = ax * dx + ay * dy,
        cost = along + Math.abs(ax * dy - ay * dx) * 2;
      if (s !== view.options.focusSection && along > 1 && cost < least) {
        least = cost;
        best = s;
      }
    });
    if (best < 0) return;
    view.options.focusSection = best;
    view.request();
    say(`${describeSection(model.sections[best], model)}. ${t("Press Enter to open.")}`);
  }

  /** @param {[number, number]} arrow */
  #stepSeat([dx, dy]) {
    const { view, model } = this,
      next = model.step(view.options.focus, dx, dy),
      i = next >= 0 ? next : view.options.focus;
    view.options.focus = i;
    this.#reveal(i);
    say(describe(model.seat(i)));
  }

  #enter() {
    const { view, model } = this,
      s = view.options.focusSection;
    if (view.options.focus >= 0) {
      this.#pick(view.options.focus);
      return;
    }
    if (s < 0) return;
    const one = model.sections[s];
    this.flyTo(s);
    this.#open(s);
    if (one.area) return;
    let first = one.base;
    while (first < one.base + one.n - 1 && model.state[first] !== FREE) first++;
    view.options.focus = first;
    say(describe(model.seat(first)));
  }

  /** @param {number} i */
  #reveal(i) {
    const { view, model } = this,
      edge = 60,
      sx = model.x[i] * view.camera.k + view.camera.x,
      sy = model.y[i] * view.camera.k + view.camera.y;
    const move = (/** @type {number} */ at, /** @type {number} */ size) =>
      at < edge ? edge - at : at > size - edge ? size - edge - at : 0;
    this.pan(move(sx, view.w), move(sy, view.h));
  }
}
customElements.define("fr-seatmap", FrSeatmap);
