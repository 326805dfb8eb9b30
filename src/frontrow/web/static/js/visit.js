// @ts-check
/** A visit to the shop, as all pages see it. They show how long it lasts, tell the room that somebody is here, ask "Are you
 * still there?" before it ends, and say so when they are closed. Who moves on inside the site has not left. The question
 * takes no focus. While nobody waits, an idle visit goes on. The tabs of one visit tell each other, so that closing one ends
 * nothing. At its end a page of the shop is over; all others go on without the time. */
import { ask, h, now_ms, say } from "./dom.js";
import { t, tn } from "./words.js";

const TICK_MS = 1_000,
  AGAIN_MS = 3_000,
  OVERTAKEN_MS = 2_000,
  LOOK_MS = 10_000,
  LINGER_MS = 2_000,
  BEAT_MS = 60_000,
  WARN_MS = 60_000,
  LOOKS_AFTER_END = 6;
const HERE = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart", "scroll"];
const bar = /** @type {HTMLElement | null} */ (document.querySelector("#visit"));
if (bar?.dataset.room) follow(bar, bar.dataset.room);

/** @param {HTMLElement} bar shows the time @param {string} room where the room's endpoints are */
function follow(bar, room) {
  const skew_ms = now_ms() - Date.now(),
    clock = bar.querySelector(".clock");
  let until_ms = Date.parse(bar.dataset.until ?? "") - skew_ms, // the end of the visit's time
    ends_ms = Infinity, // its end unless somebody is heard, if others wait
    wanted = false, // others wait
    every_ms = 30_000,
    warn_ms = WARN_MS,
    beat_ms = 0,
    look_ms = 0,
    safe_ms = 0,
    later = 0,
    over = false,
    moving = false, // to another page of ours
    asking = false;
  /** @type {BroadcastChannel | undefined} */
  let tabs;
  const text = h("p", {}),
    still = h("button", { class: "btn primary sm", type: "button", onclick: stay }, t("I’m still here")),
    title = h("strong", { id: "visit-ask" }, t("Are you still there?"));
  const question = h(
    "section",
    { id: "visit-warn", class: "visitwarn card pad", "aria-labelledby": "visit-ask", hidden: true },
    h("div", { class: "stack tight" }, title, text),
    still
  );
  document.body.append(question);
  /** @type {HTMLElement | null} */
  let before = null; // where the keyboard was
  question.addEventListener("focusin", (e) => {
    const from = /** @type {HTMLElement | null} */ (e.relatedTarget);
    if (from && !question.contains(from)) before = from;
  });
  still.addEventListener("mousedown", (e) => e.preventDefault()); // a click leaves the focus where it is

  function stay() {
    hide();
    beat();
  }
  function hide() {
    const inside = question.contains(document.activeElement);
    question.hidden = true;
    if (inside && before?.isConnected) before.focus();
  }
  async function beat() {
    if (over) return;
    beat_ms = Date.now();
    clearTimeout(later);
    later = 0;
    const short = !wanted && until_ms - beat_ms <= warn_ms; // nobody waits: the visit may become longer
    learn(await ask(`${room}/${short ? "renew" : "heartbeat"}`, { method: "POST" }));
    if (!over) tabs?.postMessage({ until_ms, ends_ms, wanted });
  }
  /** Ask how things are, which keeps no visit alive. */
  async function look() {
    if (asking) return;
    asking = true;
    look_ms = Date.now();
    learn(await ask(`${room}/visit`));
    asking = false;
  }
  /** Somebody opened this page. The page before may say "left" after our first beat, so there is a second one soon. */
  function arrive() {
    beat();
    setTimeout(beat, OVERTAKEN_MS);
  }
  /** @param {{ok: boolean, status: number, body: any}} answer */
  function learn({ ok, body }) {
    if (over) return;
    if (!ok) {
      if (!later) later = window.setTimeout(beat, LOOK_MS); // the connection is away
      return;
    }
    if (body.ended) {
      end(body);
      return;
    }
    if (body.idle_s) {
      every_ms = Math.min(BEAT_MS, body.idle_s * 250);
      warn_ms = Math.min(WARN_MS, body.idle_s * 500);
    }
    const here_ms = Date.now() - 1_000 * (body.ends_at_s - body.ends_in_s);
    goOn({
      until_ms: here_ms + 1_000 * Math.max(body.expires_at_s, body.kept_until_s),
      ends_ms: here_ms + 1_000 * body.ends_at_s,
      wanted: body.wanted
    });
  }
  /** @param {{until_ms: number, ends_ms: number, wanted: boolean}} known */
  function goOn(known) {
    ({ until_ms, ends_ms, wanted } = known);
    tick();
  }
  /** Somebody is here: the room hears of it now, or soon if it just has. */
  function here() {
    const wait_ms = beat_ms + every_ms - Date.now();
    if (wait_ms <= (question.hidden ? 0 : every_ms - TICK_MS)) beat();
    else if (!later) later = window.setTimeout(beat, wait_ms);
  }
  function tick() {
    if (over) return;
    const now = Date.now(),
      left_s = Math.max(0, Math.ceil((until_ms - now) / 1_000));
    if (clock && Number.isFinite(left_s))
      clock.textContent = `${Math.floor(left_s / 60)}:${String(left_s % 60).padStart(2, "0")}`;
    bar.toggleAttribute("data-low", left_s * 1_000 <= warn_ms);
    const idle = wanted && ends_ms < until_ms - TICK_MS,
      end_ms = (idle ? ends_ms : until_ms) - now;
    if (end_ms <= warn_ms) safe_ms = 0;
    if (end_ms > 0 && end_ms <= warn_ms) warn(Math.ceil(end_ms / 1_000), idle);
    else if (end_ms > warn_ms && !question.hidden) {
      safe_ms ||= now; // it does not vanish under the pointer: the click would go to what is behind it
      if (now >= safe_ms + LINGER_MS && !question.matches(":hover, :focus-within")) hide();
    }
    // others may wait by now; and at the end the room knows whether it is over
    if (Math.min(ends_ms, until_ms) - now <= warn_ms && now >= look_ms + (end_ms > 0 ? LOOK_MS : AGAIN_MS)) look();
  }
  /** @param {number} n seconds @param {boolean} idle */
  function warn(n, idle) {
    text.textContent = idle
      ? tn(
          "Your visit ends in {n} second, and your place goes to the next person in the queue.",
          "Your visit ends in {n} seconds, and your place goes to the next person in the queue.",
          n
        )
      : tn("The time for your visit ends in {n} second.", "The time for your visit ends in {n} seconds.", n);
    still.hidden = !idle && wanted; // the time is over, and others wait: nothing makes it longer
    title.hidden = still.hidden;
    if (!question.hidden) return;
    question.hidden = false;
    say(`${title.hidden ? "" : title.textContent} ${text.textContent}`);
  }
  /** @param {{idle: boolean, passed_on: boolean}} how */
  function end(how) {
    over = true;
    question.remove();
    if (!bar.hasAttribute("data-shop")) {
      endQuietly();
      return;
    }
    const about = h("p", { id: "visit-text" }),
      link = h("a", { class: "btn primary", href: `${room}/` }, t("Enter the waiting room"));
    const dialog = /** @type {HTMLDialogElement} */ (
      h(
        "dialog",
        {
          id: "visit-dialog",
          class: "stack",
          role: "alertdialog",
          "aria-labelledby": "visit-title",
          "aria-describedby": "visit-text",
          oncancel: (/** @type {Event} */ e) => e.preventDefault()
        },
        h("h2", { id: "visit-title" }, t("Your visit has ended")),
        about,
        h("p", { class: "row" }, link)
      )
    );
    document.body.append(dialog);
    explain(about, how, LOOKS_AFTER_END);
    dialog.showModal();
    link.focus();
    say(`${t("Your visit has ended")}. ${about.textContent}`);
  }
  /** What the page is about does not end with the visit. */
  function endQuietly() {
    const link = h("a", { href: `${room}/` }, t("Enter the waiting room"));
    bar.removeAttribute("data-low");
    bar.replaceChildren(h("div", { class: "wrap" }, h("p", {}, t("Your visit has ended")), link));
    say(t("Your visit has ended"));
  }
  /** Why the visit ended. Whether somebody else came in shows only a moment later.
   * @param {HTMLElement} about @param {{idle: boolean, passed_on: boolean}} how @param {number} looks */
  function explain(about, how, looks) {
    about.textContent = how.passed_on
      ? t("Your place went to the next person in the queue. You can join the queue again.")
      : how.idle
        ? t("Nobody was active here for a while, and others were waiting. You can join the queue again.")
        : t("You can join the queue again.");
    if (how.passed_on || !looks) return;
    setTimeout(async () => {
      const { ok, body } = await ask(`${room}/visit`);
      explain(about, ok && body.ended ? body : how, looks - 1);
    }, AGAIN_MS);
  }
  function listen() {
    // its name differs from that of older pages, which send something else
    tabs = "BroadcastChannel" in window ? new BroadcastChannel(`frontrow visit ${room}`) : undefined;
    tabs?.addEventListener("message", ({ data }) => {
      if (data === "left") beat();
      else goOn(data);
    });
  }

  for (const kind of HERE) addEventListener(kind, here, { passive: true, capture: true });
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => (moving = false), { capture: true }); // still here
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) here();
  });
  /** @type {any} */ (window).navigation?.addEventListener("navigate", (/** @type {any} */ e) => {
    const { origin } = new URL(e.destination.url, location.href);
    moving = origin === location.origin && !e.hashChange && e.downloadRequest === null;
  });
  addEventListener("pagehide", () => {
    if (!over && !moving) navigator.sendBeacon(`${room}/left`);
    moving = false;
    tabs?.postMessage("left");
    tabs?.close(); // an open channel would keep the page out of the back/forward cache
  });
  addEventListener("pageshow", (e) => {
    if (e.persisted) {
      listen();
      arrive();
    }
  });
  listen();
  arrive();
  setTimeout(beat, AGAIN_MS); // the page before this one may have said only now that it was closed
  setInterval(tick, TICK_MS);
}
