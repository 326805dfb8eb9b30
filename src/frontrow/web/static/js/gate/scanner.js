// @ts-check
/** The camera: frames to the worker, at most one at a time and ten a second; the torch, the choice of camera, the screen
 * kept on. A code that stays in view is told once: whoever holds the phone a second longer is not "already used". A slow
 * phone looks seldom: a code is gone when a frame without it was seen, however long the time between two frames is. */
import { CODE_CHARS } from "./codes.js";

const GAP_MS = 100,
  STUCK_MS = 5_000,
  GONE_MS = 1_500,
  SIDE = 720,
  CAMERA_KEY = "frontrow-door-camera";

/** @typedef {{text?: string, ms?: number, ready?: boolean, failed?: string}} FromWorker */

export class Scanner extends EventTarget {
  /** @param {HTMLVideoElement} video @param {Worker} worker @param {(code: string, seen_ms: number) => void} found */
  constructor(video, worker, found) {
    super();
    this._video = video;
    this._found = found;
    this._worker = worker;
    this._canvas = document.createElement("canvas");
    this._paper = /** @type {CanvasRenderingContext2D} */ (this._canvas.getContext("2d", { willReadFrequently: true }));
    /** @type {MediaStream | null} */
    this._stream = null;
    this._turn = 0;
    this._busy = false;
    this._drawn_ms = 0;
    this._last = "";
    this._seen_ms = 0;
    this._missed = true; // whether a frame without the last code was seen since
    this.frames = 0;
    this.decode_ms = 0;
    worker.onmessage = ({ data }) => this._read(data);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.wanted && this.start()));
    this.wanted = false;
  }

  get track() {
    return this._stream?.getVideoTracks()[0];
  }

  /** Open the camera; false when there is none, or it is not allowed. @param {string} [device] */
  async start(device = localStorage.getItem(CAMERA_KEY) ?? "") {
    this.wanted = true;
    this.stop();
    const turn = ++this._turn;
    if (!navigator.mediaDevices?.getUserMedia) return false;
    const which = device ? { deviceId: { ideal: device } } : { facingMode: "environment" };
    /** @type {MediaStream} */
    let opened;
    try {
      opened = await navigator.mediaDevices.getUserMedia({
        video: { ...which, width: { ideal: 1280 }, height: { ideal: 720 } }
      });
    } catch {
      return false;
    }
    if (turn !== this._turn) {
      // another camera was asked for meanwhile
      opened.getTracks().forEach((track) => track.stop());
      return true;
    }
    this._video.srcObject = this._stream = opened;
    await this._video.play().catch(() => {});
    this._stayAwake();
    this._next();
    this.dispatchEvent(new Event("change"));
    return true;
  }

  stop() {
    this._stream?.getTracks().forEach((track) => track.stop());
    this._stream = null;
    this._busy = false;
    this._missed = true;
  }

  _stayAwake() {
    navigator.wakeLock?.request("screen").catch(() => {});
  }

  _next() {
    if (!this._stream) return;
    const stream = this._stream,
      again = () => {
        if (this._stream === stream) this._frame();
      };
    if ("requestVideoFrameCallback" in this._video) this._video.requestVideoFrameCallback(again);
    else setTimeout(again, GAP_MS);
  }

  _frame() {
    const now = performance.now(),
      { videoWidth: wide, videoHeight: high } = this._video;
    if (now - this._drawn_ms > STUCK_MS) this._busy = false; // a worker that never answered
    if (!this._busy && wide && now - this._drawn_ms >= GAP_MS) {
      const scale = Math.min(1, SIDE / Math.min(wide, high)),
        width = Math.round(wide * scale),
        height = Math.round(high * scale);
      Object.assign(this._canvas, { width, height });
      this._paper.drawImage(this._video, 0, 0, width, height);
      const { buffer } = this._paper.getImageData(0, 0, width, height).data;
      this._busy = true;
      this._drawn_ms = now;
      this._worker.postMessage({ pixels: buffer, width, height }, [buffer]);
    }
    this._next();
  }

  /** @param {FromWorker} told */
  _read({ text, ms, failed }) {
    if (failed) this.dispatchEvent(new CustomEvent("failed", { detail: failed }));
    if (text === undefined) return;
    this._busy = false;
    this.frames++;
    this.decode_ms += ms ?? 0;
    if (!text) this._missed = true;
    if (!text || !this._stream) return;
    const now = performance.now(),
      printed = text.slice(0, CODE_CHARS); // a rotating part changes while it is in view
    const same = printed === this._last && (!this._missed || now - this._seen_ms < GONE_MS);
    this._last = printed;
    this._seen_ms = now;
    this._missed = false;
    if (!same) this._found(text, this._drawn_ms);
  }

  /** @returns {Promise<{id: string, name: string}[]>} */
  async cameras() {
    const all = await navigator.mediaDevices.enumerateDevices().catch(() => []);
    return all
      .filter((one) => one.kind === "videoinput" && one.deviceId)
      .map((one, n) => ({ id: one.deviceId, name: one.label || String(n + 1) }));
  }

  /** @param {string} device */
  async choose(device) {
    localStorage.setItem(CAMERA_KEY, device);
    return this.start(device);
  }

  /** Whether this camera has a lamp. */
  get hasTorch() {
    return Boolean(/** @type {any} */ (this.track?.getCapabilities?.())?.torch);
  }

  /** Switch the lamp; false when the camera did not. @param {boolean} on @returns {Promise<boolean>} */
  async torch(on) {
    if (!this.track) return false;
    const how = /** @type {any} */ ({ advanced: [{ torch: on }] });
    return this.track.applyConstraints(how).then(
      () => true,
      () => false
    );
  }
}
