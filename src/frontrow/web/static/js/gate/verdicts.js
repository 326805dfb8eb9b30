// @ts-check
/** What people at the gate see, hear and feel: a colour, big words, a sound of its own and a vibration per verdict. */
import { $ } from "../dom.js";
import { t } from "../words.js";

const FRESH_MS = 4_000;

/** @typedef {"ok" | "duplicate" | "wrong_event" | "wrong_day" | "revoked" | "refunded" | "forged" | "old_code" | "unreadable" | "unsure" | "left" | "not_inside" | "look_up" | "disputed"} Kind */

/** Tones in hertz and milliseconds: rising lets in, falling keeps out, even asks for another try.
 * @type {Record<Kind, [number, number][]>} */
const TONES = {
  ok: [
    [880, 90],
    [1320, 160]
  ],
  duplicate: [
    [440, 140],
    [0, 60],
    [440, 140],
    [0, 60],
    [330, 260]
  ],
  wrong_event: [
    [520, 160],
    [390, 300]
  ],
  wrong_day: [
    [520, 160],
    [390, 160],
    [520, 260]
  ],
  revoked: [
    [300, 250],
    [200, 400]
  ],
  disputed: [
    [300, 250],
    [0, 60],
    [300, 250]
  ],
  refunded: [
    [300, 250],
    [250, 150],
    [200, 300]
  ],
  forged: [[180, 700]],
  old_code: [
    [660, 90],
    [0, 60],
    [660, 90],
    [0, 60],
    [660, 90]
  ],
  unreadable: [[740, 80]],
  unsure: [
    [500, 120],
    [0, 80],
    [500, 120]
  ],
  left: [
    [880, 90],
    [660, 160]
  ],
  not_inside: [
    [520, 160],
    [390, 300]
  ],
  look_up: [
    [500, 120],
    [0, 80],
    [660, 120]
  ]
};
/** @type {Record<Kind, number[]>} */
const SHAKES = {
  ok: [60],
  duplicate: [120, 80, 120],
  wrong_event: [250],
  wrong_day: [250, 80, 60],
  revoked: [400],
  disputed: [300, 80, 300],
  refunded: [300, 80, 100],
  forged: [600],
  old_code: [50, 50, 50, 50, 50],
  unreadable: [30],
  unsure: [80, 80],
  left: [60],
  not_inside: [250],
  look_up: [80, 80]
};
/** @type {Record<Kind, string>} */
const SIGNS = {
  ok: "M4 13l6 6L21 6",
  duplicate: "M12 4v10M12 19v1",
  wrong_event: "M4 12h15M13 6l6 6-6 6",
  wrong_day: "M12 6v6l4 3M3 12a9 9 0 1 0 18 0 9 9 0 1 0-18 0",
  revoked: "M6 6l12 12M18 6L6 18",
  disputed: "M12 4v10M12 19v1",
  refunded: "M9 6L4 11l5 5M4 11h10a6 6 0 0 1 6 6v1",
  forged: "M6 6l12 12M18 6L6 18",
  old_code: "M12 6v6l4 3M3 12a9 9 0 1 0 18 0 9 9 0 1 0-18 0",
  unreadable: "M9 9a3 3 0 1 1 4 3c-1 .6-1 1-1 2M12 18v1",
  unsure: "M9 9a3 3 0 1 1 4 3c-1 .6-1 1-1 2M12 18v1",
  left: "M10 4H5v16h5M9 12h11M16 8l4 4-4 4",
  not_inside: "M12 4v10M12 19v1",
  look_up: "M9 9a3 3 0 1 1 4 3c-1 .6-1 1-1 2M12 18v1"
};

/** The verdict's big words. @param {Kind} kind */
export function heading(kind) {
  switch (kind) {
    case "ok":
      return t("Welcome");
    case "duplicate":
      return t("Already used");
    case "wrong_event":
      return t("Wrong event");
    case "wrong_day":
      return t("Wrong day");
    case "revoked":
      return t("No longer valid");
    case "disputed":
      return t("Disputed");
    case "refunded":
      return t("Refunded");
    case "forged":
      return t("Not our ticket");
    case "old_code":
      return t("Old code");
    case "unreadable":
      return t("Not readable");
    case "unsure":
      return t("Cannot check");
    case "left":
      return t("Goodbye");
    case "not_inside":
      return t("Not inside");
    case "look_up":
      return t("Check by hand");
  }
}

/** @type {AudioContext | null} */
let sound = null;
/** Browsers let a page sound only after somebody has touched it. */
export function unlockSound() {
  sound ??= new AudioContext();
  if (sound.state === "suspended") sound.resume().catch(() => {});
  $("#tap").hidden = true;
}

/** @param {Kind} kind */
function play(kind) {
  if (!sound || sound.state !== "running") return;
  let at = sound.currentTime + 0.01;
  for (const [hertz, ms] of TONES[kind]) {
    if (hertz) {
      const tone = sound.createOscillator(),
        loud = sound.createGain();
      tone.type = kind === "ok" || kind === "left" ? "sine" : "square";
      tone.frequency.value = hertz;
      loud.gain.setValueAtTime(kind === "ok" ? 0.5 : 0.25, at);
      loud.gain.linearRampToValueAtTime(0, at + ms / 1000);
      tone.connect(loud).connect(sound.destination);
      tone.start(at);
      tone.stop(at + ms / 1000);
    }
    at += ms / 1000;
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let fading;
/** Show a verdict. The panel is an alert, so that it is read out; its colour fades so that an old green is not a new one.
 * @param {Kind} kind @param {string} seat @param {string} detail @param {boolean} aloud @param {string} [name] who has the ticket */
export function show(kind, seat, detail, aloud, name = "") {
  const panel = $("#verdict");
  panel.dataset.verdict = kind;
  delete panel.dataset.old;
  panel.classList.remove("new");
  void panel.offsetWidth; // so that the same verdict again is seen to be new
  panel.classList.add("new");
  $("#verdict-sign", panel).setAttribute("d", SIGNS[kind]);
  $("#verdict-heading").textContent = heading(kind);
  $("#verdict-seat").textContent = seat;
  $("#verdict-name").textContent = name;
  $("#verdict-detail").textContent = detail;
  clearTimeout(fading);
  fading = setTimeout(() => {
    panel.dataset.old = "";
  }, FRESH_MS);
  if (aloud) play(kind);
  navigator.vibrate?.(SHAKES[kind]);
}
