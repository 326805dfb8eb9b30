// @ts-check
/** <fr-seatmap>: pointer, wheel, pinch and keyboard over SeatView. Fires "seat-pick", "section-pick", "landed",
 * "tip" and speaks.
 * Whatever can be dragged can be clicked too (zoom buttons), and no target smaller than 22 px is acted upon by touch. */
import { say } from "../dom.js";
import { number, priced, t } from "../words.js";
import { COMPANION, FREE, HELD, RESTRICTED, STEP_FREE } from "./model.js";
import { seatName } from "./names.js";
import { PITCH, SeatView } from "./view.js";

const FLY_MS = 320,
  MAX_ZOOM = 8,
  MOVED_PX = 6,
  TOUCH_MOVED_PX = 12,
  TOUCH_SEAT_PX = 22,
  TOUCH_LANDS_PX = 26,
  MOUSE_SEAT_PX = 9,
  MOUSE_LANDS_PX = 20;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** What a seat costs and is like, in words. @param {import("./model.js").SeatInfo} seat */
function traits(seat) {
  const state = seat.mine
    ? t("chosen by you")
    : seat.state === FREE
      ? t("free")
      : seat.state === HELD
        ? t("held by someone")
        : t("taken");
  return [
    priced(seat.tier.price, seat.tier.fee ?? 0, seat.tier.cur),
    state,
    seat.flags & STEP_FREE ? t("step-free") : "",
    seat.flags & COMPANION ? t("companion seat") : "",
    seat.flags & RESTRICTED ? t("restricted view") : ""
  ]
    .filter(Boolean)
    .join(", ");
}

/** What a seat is like, in words: section, row, seat, price, state. @param {import("./model.js").SeatInfo} seat */
export const describe = (seat) => `${seatName(seat)}, ${traits(seat)}`;

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
function describeSection(one, model) {
  const price = priceRange(one, model);
  return t("Section {section}, {free} of {n} seats free, {price}", {
    section: one.name,
    free: number(one.fit),
    n: number(one.n),
    price
  });
}

export class FrSeatmap extends HTMLElement {
  /** @type {import("./model.js").SeatModel} */ model = /** @type {any} */ (null);
  /** @type {SeatView} */ view = /** @type {any} */ (null);
  /** @type {Map<number, {x: number, y: number}>} */ #pointers = new Map();
  #began = { x: 0, y: 0 };
  #moved = false;
  #pinch = 0;
  #flight = 0;
  #whole = true;

  /** @param {import("./model.js").SeatModel} model */
  start(model) {
    this.model = model;
    const [base, over] = [document.createElement("canvas"), document.createElement("canvas")];
    for (const canvas of [base, over]) canvas.setAttribute("aria-hidden", "true");
    this.replaceChildren(base, over);
    const view = (this.view = new SeatView(base, over, model));
    this.#resize();
    view.camera = view.fit();
    view.draw();
    new ResizeObserver(() => {
      this.#resize();
      if (this.#whole) this.#land();
      view.camera = this.#whole ? view.fit() : view.keepInSight(view.camera);
      view.draw();
    }).observe(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      view.readTheme();
      view.draw();
    });
    this.#listen();
  }

  /** Measure the map, and what lies over it (siblings with `data-over`): a tall one takes a side, a wide one top or bottom. */
  #resize() {
    const { view } = this,
      box = this.getBoundingClientRect(),
      inset = { top: 0, right: 0, bottom: 0, left: 0 };
    view.resize();
    for (const other of this.parentElement?.querySelectorAll(":scope > [data-over]") ?? []) {
      const b = other.getBoundingClientRect();
      if (!b.width || !b.height) continue;
      if (b.height > b.width && (b.left + b.right) / 2 < (box.left + box.right) / 2) inset.left = b.right - box.left;
      else if (b.height > b.width) inset.right = box.right - b.left;
      else if ((b.top + b.bottom) / 2 < (box.top + box.bottom) / 2) inset.top = b.bottom - box.top;
      else inset.bottom = box.bottom - b.top;
    }
    view.inset = inset;
  }

  #listen() {
    this.addEventListener(
      "wheel",
      (e) => {
        if (e.deltaY > 0 && !e.ctrlKey && this.#wholeShown) return; // nothing to zoom out of: the page may scroll
        e.preventDefault();
        const box = this.getBoundingClientRect();
        this.#zoomAt(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0018)), e.clientX - box.left, e.clientY - box.top);
      },
      { passive: false }
    );
    this.addEventListener("pointerdown", (e) => {
      this.setPointerCapture(e.pointerId);
      this.#pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
      this.#moved = this.#pointers.size > 1;
      this.#began = { x: e.clientX, y: e.clientY };
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
    this.addEventListener("pointerleave", () => this.#unmark());
    this.addEventListener("keydown", (e) => {
      if (this.#key(e)) e.preventDefault();
    });
    this.addEventListener("focus", () => this.#focused());
  }

  /** Somebody came with the keyboard: show where they are. */
  #focused() {
    const { options } = this.view;
    if (options.focusSection >= 0 || options.focus >= 0 || !this.matches(":focus-visible")) return;
    options.focusSection = this.model.sections.findIndex((one) => one.fit > 0);
    this.view.request();
    say(t("Arrow keys move, Enter opens or picks, Escape shows the whole venue."));
  }

  /** Whether the camera shows the whole venue, so that there is nothing to move. */
  get #wholeShown() {
    return this.view.camera.k <= this.view.fit().k * 1.001;
  }

  /** @param {import("./view.js").Camera} camera */
  #aim(camera) {
    const { view } = this;
    view.camera = view.keepInSight(camera);
    this.#whole = this.#wholeShown;
    this.#unmark();
    this.#shareScrolling();
    view.request();
  }
  /** One finger scrolls the page while the map shows everything, if there is a page to scroll. */
  #shareScrolling() {
    const root = document.documentElement,
      page = root.scrollHeight > root.clientHeight + 1 && this.#wholeShown;
    this.style.touchAction = page ? "pan-y" : "none";
  }

  /** @param {number} factor @param {number} sx @param {number} sy */
  #zoomAt(factor, sx, sy) {
    const { camera } = this.view,
      k = Math.min(MAX_ZOOM, Math.max(this.view.fit().k, camera.k * factor)),
      q = k / camera.k;
    this.#aim({ k, x: sx - (sx - camera.x) * q, y: sy - (sy - camera.y) * q });
  }
  /** @param {number} factor */
  zoom(factor) {
    const [x, y] = this.view.middle;
    this.#land();
    this.#zoomAt(factor, x, y);
  }
  /** Show the whole venue: also when the map gets another size on the way. */
  fit() {
    this.#resize();
    this.#fly(this.view.fit());
    this.#whole = true;
  }
  /** Whether the camera is on its way by itself. */
  get flying() {
    return this.#flight !== 0;
  }
  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const { camera } = this.view;
    this.#aim({ ...camera, x: camera.x + dx, y: camera.y + dy });
  }

  #land() {
    cancelAnimationFrame(this.#flight);
    this.#flight = 0;
  }
  /** @param {import("./view.js").Camera} goal */
  #fly(goal) {
    const { view } = this,
      to = view.keepInSight(goal),
      from = { ...view.camera };
    this.#land();
    this.#unmark();
    this.#whole = false;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#aim(to);
      this.dispatchEvent(new CustomEvent("landed"));
      return;
    }
    const [mx, my] = view.middle,
      middle = (/** @type {import("./view.js").Camera} */ c) => [(mx - c.x) / c.k, (my - c.y) / c.k],
      [ax, ay] = middle(from),
      [bx, by] = middle(to);
    let began = 0;
    const step = (/** @type {number} */ now) => {
      began ||= now;
      const part = Math.min(1, (now - began) / FLY_MS),
        eased = 1 - (1 - part) ** 3,
        k = from.k * (to.k / from.k) ** eased;
      view.camera = part < 1 ? { k, x: mx - (ax + (bx - ax) * eased) * k, y: my - (ay + (by - ay) * eased) * k } : to;
      view.draw();
      this.#flight = part < 1 ? requestAnimationFrame(step) : 0;
      if (this.#flight) return;
      this.#shareScrolling();
      this.dispatchEvent(new CustomEvent("landed"));
    };
    this.#flight = requestAnimationFrame(step);
  }

  /** Show a section; seats become at least so large that one can be picked, around the spot that was touched.
   * @param {number} s @param {{wx: number, wy: number}} [at] @param {number} [seatPx] */
  flyTo(s, at, seatPx = 0) {
    const { view } = this,
      one = this.model.sections[s],
      b = one.box,
      pad = 28,
      { top, right, bottom, left } = view.inset,
      whole = Math.min(
        4.5,
        (view.w - left - right - 2 * pad) / (b[2] - b[0] + 20),
        (view.h - top - bottom - 2 * pad) / (b[3] - b[1] + 20)
      ),
      k = Math.max(view.fit().k, whole, one.area ? 0 : seatPx / PITCH),
      near = k > whole && at,
      [mx, my] = view.middle;
    view.options.focusSection = s;
    this.#fly({
      k,
      x: mx - (near ? at.wx : (b[0] + b[2]) / 2) * k,
      y: my - (near ? at.wy : (b[1] + b[3]) / 2) * k
    });
  }

  /** Seats changed: paint them again, and say the new state of the one that is described. @param {number[]} changed */
  update(changed) {
    this.view.touch(changed);
    const { hover, hoverSection } = this.view.options;
    if (hover >= 0 ? changed.includes(hover) : hoverSection >= 0) this.#describe();
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
      { options } = view,
      { wx, wy } = this.#world(e),
      seat = view.showsSeats ? model.hit(wx, wy, 6) : -1,
      section = seat < 0 ? model.hitSection(wx, wy) : -1;
    if (this.flying || (seat === options.hover && section === options.hoverSection)) return;
    options.hover = seat;
    options.hoverSection = section;
    this.#describe();
    view.request();
  }
  /** The tip beside what the mouse is over; none where that is gone. */
  #describe() {
    const { view, model } = this,
      { hover, hoverSection } = view.options;
    if (hover >= 0)
      this.#tip({
        x: model.x[hover],
        y: model.y[hover],
        title: seatName(model.seat(hover)),
        text: traits(model.seat(hover))
      });
    else if (hoverSection >= 0 && (!view.showsSeats || model.sections[hoverSection].area)) {
      const one = model.sections[hoverSection];
      this.#tip({
        x: one.cx,
        y: one.cy,
        title: one.name,
        text: describeSection(one, model).split(", ").slice(1).join(", ")
      });
    } else this.#tip(null);
  }
  /** Nothing is under the mouse any more. */
  #unmark() {
    const { options } = this.view;
    if (options.hover < 0 && options.hoverSection < 0) return;
    options.hover = options.hoverSection = -1;
    this.#tip(null);
    this.view.request();
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
      dy = e.clientY - at.y,
      slop = e.pointerType === "mouse" ? MOVED_PX : TOUCH_MOVED_PX;
    at.x = e.clientX;
    at.y = e.clientY;
    if (this.#pointers.size === 2) {
      const [a, b] = [...this.#pointers.values()],
        apart = Math.hypot(a.x - b.x, a.y - b.y),
        box = this.getBoundingClientRect();
      if (this.#pinch) this.#zoomAt(apart / this.#pinch, (a.x + b.x) / 2 - box.left, (a.y + b.y) / 2 - box.top);
      this.#pinch = apart;
    } else if (this.#moved) this.pan(dx, dy);
    else if (Math.hypot(e.clientX - this.#began.x, e.clientY - this.#began.y) > slop) {
      this.#moved = true;
      this.pan(e.clientX - this.#began.x, e.clientY - this.#began.y);
    }
  }

  /** @param {PointerEvent} e */
  #up(e) {
    if (!this.#pointers.delete(e.pointerId)) return;
    this.#pinch = 0;
    if (this.#moved) return;
    const { view, model } = this,
      at = this.#world(e),
      coarse = e.pointerType !== "mouse",
      section = model.hitSection(at.wx, at.wy),
      seat = view.seatPx >= (coarse ? TOUCH_SEAT_PX : MOUSE_SEAT_PX) ? model.hit(at.wx, at.wy, 6) : -1;
    if (seat >= 0) this.#pick(seat);
    else if (section >= 0 && (model.sections[section].area || view.seatPx < MOUSE_LANDS_PX)) {
      this.#open(section);
      this.flyTo(section, at, coarse ? TOUCH_LANDS_PX : view.showsSeats ? MOUSE_LANDS_PX : MOUSE_SEAT_PX);
    }
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
    else if (e.key === "Escape" && (view.options.hover >= 0 || view.options.hoverSection >= 0)) this.#unmark();
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
    const one = model.sections[best];
    this.#reveal(one.cx, one.cy);
    say(`${describeSection(model.sections[best], model)}. ${t("Press Enter to open.")}`);
  }

  /** @param {[number, number]} arrow */
  #stepSeat([dx, dy]) {
    const { view, model } = this,
      next = model.step(view.options.focus, dx, dy),
      i = next >= 0 ? next : view.options.focus;
    view.options.focus = i;
    this.#reveal(model.x[i], model.y[i]);
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
    let first = one.base;
    while (first < one.base + one.n - 1 && model.state[first] !== FREE) first++;
    this.#open(s);
    this.flyTo(s, { wx: model.x[first], wy: model.y[first] }, MOUSE_SEAT_PX);
    if (one.area) return;
    view.options.focus = first;
    say(describe(model.seat(first)));
  }

  /** Move the map so that a spot is in sight. @param {number} wx @param {number} wy */
  #reveal(wx, wy) {
    const { view } = this,
      { top, right, bottom, left } = view.inset,
      edge = 60,
      move = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ to) =>
        at < from + edge ? from + edge - at : at > to - edge ? to - edge - at : 0;
    this.pan(
      move(wx * view.camera.k + view.camera.x, left, view.w - right),
      move(wy * view.camera.k + view.camera.y, top, view.h - bottom)
    );
    view.request();
  }
}
customElements.define("fr-seatmap", FrSeatmap);
