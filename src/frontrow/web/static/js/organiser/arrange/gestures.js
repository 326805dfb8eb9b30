// @ts-check
/** Mouse, pen and fingers on the board. A mouse drags what it is on, or a frame around several. A finger first chooses by
 * a tap, then drags what is chosen; anywhere else it scrolls the page, or the plan once that is zoomed. Alt or Ctrl switches
 * the grid off while dragging; Escape gives the drag up. */
import { say } from "../../dom.js";
import { bendChosen, chosenPoints, moveChosen, rotateChosen } from "./draft.js";
import { lengthOf, snapTo } from "./geometry.js";
import { t } from "../../words.js";
import { TURN } from "./arranger.js";

/** @typedef {import("./board.js").Spot} Spot */
const MOVED_PX = 4,
  TOUCH_MOVED_PX = 10,
  GRIP_PX = 14,
  TOUCH_GRIP_PX = 24,
  REACH = 6,
  REACH_PX = 8,
  TOUCH_REACH_PX = 18,
  BEND_STEP = 2,
  DEGREES = 180 / Math.PI;

export class Gestures {
  /** @type {Map<number, Spot>} */ #fingers = new Map();
  /** @type {"" | "tap" | "move" | "turn" | "bend" | "frame" | "pan" | "pinch"} */ #what = "";
  /** @type {Spot} */ #began = { x: 0, y: 0 };
  #apart = 0;
  #moved = false;
  #degrees = 0;
  #coarse = false;
  /** Whether the space bar is held: the mouse then moves the plan under the window. */ held = false;

  /** @param {HTMLElement} box @param {import("./board.js").Board} board @param {import("./arranger.js").Arranger} arranger */
  constructor(box, board, arranger) {
    this.box = box;
    this.board = board;
    this.arranger = arranger;
    box.addEventListener("touchstart", (e) => this.#claim(e), { passive: false });
    box.addEventListener("pointerdown", (e) => this.#down(e));
    box.addEventListener("pointermove", (e) => this.#move(e));
    box.addEventListener("pointerup", (e) => this.#up(e));
    box.addEventListener("pointercancel", () => this.cancel());
    box.addEventListener(
      "wheel",
      (e) => {
        if (e.deltaY > 0 && !e.ctrlKey && board.showsWhole) return; // nothing to zoom out of: the page may scroll
        e.preventDefault();
        board.zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0018)), this.#at(e));
      },
      { passive: false }
    );
  }
  get busy() {
    return this.#what !== "" && this.#what !== "tap";
  }

  /** Give up what is going on. */
  cancel() {
    this.#what = "";
    this.#fingers.clear();
    this.board.frameOf = null;
    this.board.shift = [0, 0];
    this.board.draft = this.arranger.draft;
    this.board.repaint();
  }

  /** @param {{clientX: number, clientY: number}} e @returns {Spot} */
  #at(e) {
    const box = this.box.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  }
  /** @param {Spot} at @param {boolean} coarse */
  #grip(at, coarse) {
    const { grips } = this.board,
      reach = coarse ? TOUCH_GRIP_PX : GRIP_PX,
      near = (/** @type {Spot} */ spot) => Math.hypot(spot.x - at.x, spot.y - at.y) <= reach;
    if (!grips) return "";
    return near(grips.turn) ? "turn" : near(grips.bend) ? "bend" : "";
  }
  /** @param {Spot} at @param {boolean} coarse */
  #hit(at, coarse) {
    const [x, y] = this.board.place(at);
    return this.arranger.hit(x, y, Math.max(REACH, (coarse ? TOUCH_REACH_PX : REACH_PX) / this.board.camera.k));
  }

  /** Keep the page from scrolling only where a finger has something to do here. @param {TouchEvent} e */
  #claim(e) {
    const at = this.#at(e.touches[0]),
      ours =
        e.touches.length > 1 ||
        this.arranger.several ||
        !this.board.showsWhole ||
        this.#grip(at, true) ||
        this.board.chosen.has(this.#hit(at, true));
    if (ours && e.cancelable) e.preventDefault();
  }

  /** @param {PointerEvent} e */
  #down(e) {
    if (e.button > 1) return;
    const at = this.#at(e),
      coarse = e.pointerType === "touch";
    this.box.setPointerCapture(e.pointerId);
    this.#fingers.set(e.pointerId, at);
    if (this.#fingers.size === 2) {
      const [a, b] = [...this.#fingers.values()];
      this.board.shift = [0, 0];
      this.board.frameOf = null;
      this.board.reshape(this.arranger.draft);
      this.#what = "pinch";
      this.#apart = Math.hypot(a.x - b.x, a.y - b.y);
      return;
    }
    if (coarse) this.box.focus({ preventScroll: true });
    this.#began = at;
    this.#coarse = coarse;
    this.#moved = false;
    this.#degrees = 0;
    this.#what = e.button === 1 || this.held ? "pan" : this.#begin(at, coarse, e.shiftKey);
  }
  /** What a pointer begins here. @param {Spot} at @param {boolean} coarse @param {boolean} adds @returns {"tap" | "move" | "turn" | "bend" | "frame" | "pan"} */
  #begin(at, coarse, adds) {
    const { arranger } = this,
      grip = this.#grip(at, coarse);
    if (grip) return grip;
    const key = this.#hit(at, coarse);
    if (key && arranger.chosen.has(key) && !adds && !arranger.several) return "move";
    if (coarse) return "tap";
    if (!key) return "frame";
    if (adds || arranger.several) return "tap";
    arranger.choose([key]);
    return "move";
  }

  /** @param {PointerEvent} e */
  #move(e) {
    const at = this.#at(e),
      last = this.#fingers.get(e.pointerId);
    if (!last) {
      if (e.pointerType === "mouse") this.#hover(at);
      return;
    }
    this.#fingers.set(e.pointerId, at);
    if (this.#what === "pinch") {
      const [a, b] = [...this.#fingers.values()];
      if (!b) return;
      const apart = Math.hypot(a.x - b.x, a.y - b.y);
      this.board.zoom(apart / Math.max(1, this.#apart), { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
      this.#apart = apart;
      return;
    }
    const far = Math.hypot(at.x - this.#began.x, at.y - this.#began.y);
    if (!this.#moved && far < (this.#coarse ? TOUCH_MOVED_PX : MOVED_PX)) return;
    this.#moved = true;
    if (this.#what === "tap") this.#what = this.arranger.several ? "frame" : "pan";
    this.#drag(at, last, e.altKey || e.ctrlKey || e.metaKey);
  }
  /** @param {Spot} at @param {Spot} last @param {boolean} free */
  #drag(at, last, free) {
    const { board, arranger } = this,
      { k } = board.camera,
      [dx, dy] = [(at.x - this.#began.x) / k, (at.y - this.#began.y) / k];
    if (this.#what === "pan") board.pan(at.x - last.x, at.y - last.y);
    else if (this.#what === "frame") {
      board.frameOf = [this.#began, at];
      board.request();
    } else if (this.#what === "move") {
      board.shift = arranger.aim(dx, dy, free);
      board.request();
    } else this.#reshape(at, dx, dy, free);
  }
  /** Turn or bend along with the handle. @param {Spot} at @param {number} dx @param {number} dy @param {boolean} free */
  #reshape(at, dx, dy, free) {
    const { board, arranger } = this,
      lists = chosenPoints(arranger.draft, arranger.chosen);
    board.draft = arranger.draft;
    const grips = board.grips;
    if (!grips) return;
    const snap = (/** @type {number} */ degrees, /** @type {number} */ step) =>
      arranger.snaps && !free ? snapTo(degrees, step) : degrees;
    if (this.#what === "turn") {
      const middle = board.spot(...grips.middle),
        angle = (/** @type {Spot} */ spot) => Math.atan2(spot.y - middle.y, spot.x - middle.x);
      this.#degrees = snap((angle(at) - angle(this.#began)) * DEGREES, TURN);
      board.reshape(rotateChosen(arranger.draft, arranger.chosen, this.#degrees));
    } else {
      const down = dx * grips.down[0] + dy * grips.down[1],
        length = Math.max(20, ...lists.map(lengthOf));
      this.#degrees = snap(((8 * down) / length) * DEGREES, BEND_STEP);
      board.reshape(bendChosen(arranger.draft, arranger.chosen, this.#degrees));
    }
  }

  /** @param {PointerEvent} e */
  #up(e) {
    if (!this.#fingers.delete(e.pointerId)) return;
    const { board, arranger } = this,
      what = this.#what,
      at = this.#at(e);
    if (this.#fingers.size) return;
    this.#what = "";
    if (what === "pinch" || what === "pan") return;
    if (!this.#moved) {
      if (what === "tap" || what === "frame") this.#tap(at, e.shiftKey || arranger.several);
      return;
    }
    if (what === "frame") this.#choose(at, e.shiftKey || arranger.several);
    else if (what === "move") {
      const [dx, dy] = board.shift;
      board.shift = [0, 0];
      if (dx || dy) arranger.commit(moveChosen(arranger.draft, arranger.chosen, dx, dy));
      if (dx || dy) say(t("{what}: moved.", { what: arranger.what }));
    } else if ((what === "turn" || what === "bend") && this.#degrees) {
      arranger.commit(board.draft);
      say(what === "turn" ? arranger.turned(this.#degrees) : arranger.bent());
    } else this.cancel();
  }
  /** @param {Spot} at @param {boolean} adds */
  #tap(at, adds) {
    const key = this.#hit(at, this.#coarse);
    if (key && adds) this.arranger.toggle(key);
    else if (key || !adds) this.arranger.choose(key ? [key] : []);
    if (key) say(this.arranger.what);
  }
  /** @param {Spot} at @param {boolean} adds */
  #choose(at, adds) {
    const [ax, ay] = this.board.place(this.#began),
      [bx, by] = this.board.place(at),
      found = this.arranger.within(Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by));
    this.board.frameOf = null;
    this.arranger.choose(adds ? [...this.arranger.chosen, ...found] : found);
    say(this.arranger.what);
  }
  /** @param {Spot} at */
  #hover(at) {
    const grip = this.#grip(at, false);
    this.box.style.cursor = grip ? "grab" : this.#hit(at, false) ? "move" : "default";
  }
}
