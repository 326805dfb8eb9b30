// @ts-check
/** A visit to the shop, as its pages see it. They tell the room that somebody is here, ask "Are you still there?" before the
 * visit ends, and say so when they are closed. The tabs of one visit tell each other, so that closing one ends nothing. */
import { ask, h, say } from "./dom.js";
import { t, tn } from "./words.js";

const TICK_MS = 1_000,
  AGAIN_MS = 3_000,
  OVERTAKEN_MS = 2_000,
  WARN_MS = 30_000,
  ENDED = [401, 403, 409];
const HERE = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart", "scroll"];
const room = /** @type {HTMLElement | null} */ (document.querySelector("#visit"))?.dataset.room;
if (room) follow(room);

/** @param {string} room where the room's endpoints are */
function follow(room) {
  let ends_ms = Infinity,
    every_ms = 30_000,
    warn_ms = WARN_MS,
    beat_ms = 0,
    later = 0,
    over = false,
    asking = false;
  /** @type {BroadcastChannel | undefined} */
  let tabs;
  const text = h("p", { id: "visit-text" }),
    acts = h(
      "p",
      { class: "row" },
      h(
        "button",
        {
          class: "btn primary",
          type: "button",
          onclick: () => {
            dialog.close();
            beat();
          }
        },
        t("I am still here")
      )
    );
  const title = h("h2", { id: "visit-title" }, t("Are you still there?"));
  const dialog = /** @type {HTMLDialogElement} */ (
    h(
      "dialog",
      {
        id: "visit-dialog",
        class: "stack",
        role: "alertdialog",
        "aria-labelledby": "visit-title",
        "aria-describedby": "visit-text"
      },
      title,
      text,
      acts
    )
  );
  document.body.append(dialog);

  async function beat() {
    if (over) return;
    beat_ms = Date.now();
    clearTimeout(later);
    later = 0;
    learn(await ask(`${room}/heartbeat`, { method: "POST" }));
    if (!over) tabs?.postMessage(ends_ms);
  }
  /** Somebody opened this page. The page before may say "left" after our first beat, so there is a second one soon. */
  function arrive() {
    beat();
    setTimeout(beat, OVERTAKEN_MS);
  }
  /** @param {{ok: boolean, status: number, body: any}} answer */
  function learn(answer) {
    if (over) return;
    if (ENDED.includes(answer.status)) {
      end();
      return;
    }
    if (!answer.ok) return; // the connection is away: asked again later
    const { ends_in_s, idle_s } = answer.body;
    if (idle_s) {
      every_ms = idle_s * 250;
      warn_ms = Math.min(WARN_MS, idle_s * 500);
    }
    goOn(Date.now() + 1_000 * ends_in_s);
  }
  /** @param {number} until_ms */
  function goOn(until_ms) {
    ends_ms = until_ms;
    if (!over && dialog.open && ends_ms - Date.now() > warn_ms) dialog.close();
  }
  /** Somebody is here: the room hears of it now, or soon if it just has. */
  function here() {
    const wait_ms = beat_ms + every_ms - Date.now();
    if (dialog.open || wait_ms <= 0) beat();
    else if (!later) later = window.setTimeout(beat, wait_ms);
  }
  function tick() {
    const left_ms = ends_ms - Date.now();
    if (over || left_ms > warn_ms) return;
    if (left_ms > 0) warn(Math.ceil(left_ms / 1_000));
    else if (!asking) {
      // the room knows whether it is over; asking this way keeps no visit alive
      asking = true;
      ask(`${room}/left`, { method: "POST" }).then((answer) => {
        asking = false;
        learn(answer);
      });
    }
  }
  /** @param {number} n seconds */
  function warn(n) {
    text.textContent = tn(
      "Your visit ends in {n} second, and your place goes to the next person in the queue.",
      "Your visit ends in {n} seconds, and your place goes to the next person in the queue.",
      n
    );
    if (dialog.open) return;
    dialog.showModal();
    say(`${t("Are you still there?")} ${text.textContent}`);
  }
  function end() {
    over = true;
    title.textContent = t("Your visit has ended");
    text.textContent = t("Your place went to the next person in the queue. You can join the queue again.");
    acts.replaceChildren(h("a", { class: "btn primary", href: `${room}/` }, t("Enter the waiting room")));
    dialog.addEventListener("cancel", (e) => e.preventDefault());
    if (!dialog.open) dialog.showModal();
    acts.querySelector("a")?.focus();
    say(`${title.textContent}. ${text.textContent}`);
  }
  function listen() {
    tabs = "BroadcastChannel" in window ? new BroadcastChannel(`frontrow ${room}`) : undefined;
    tabs?.addEventListener("message", ({ data }) => {
      if (data === "left") beat();
      else goOn(Number(data));
    });
  }

  for (const kind of HERE) addEventListener(kind, here, { passive: true, capture: true });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) here();
  });
  addEventListener("pagehide", () => {
    if (!over) navigator.sendBeacon(`${room}/left`);
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
