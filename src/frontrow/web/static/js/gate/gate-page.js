// @ts-check
/** The page of one gate: camera, hand scanner and typed codes lead to one check; what came of it is shown and listed. */
import { $, data, h, say } from "../dom.js";
import { placeName } from "../seatmap/names.js";
import { lang, number, t } from "../words.js";
import { addOnList } from "./add-ons.js";
import { Checking } from "./checking.js";
import { canVerify } from "./gate-check.js";
import { Guests } from "./offline-guests.js";
import { forgetPages, keepOffline, offerInstall, scanWorker } from "./install.js";
import { Link } from "./link.js";
import { openLookUp } from "./lookup.js";
import { Scanner } from "./scanner.js";
import { Store } from "./store.js";
import { Sync } from "./sync.js";
import { heading, show, unlockSound } from "./verdicts.js";

/** @typedef {import("./checking.js").Checked} Checked */
const GATE_KEY = "frontrow-door-gate",
  SOUND_KEY = "frontrow-door-silent",
  MAX_QUEUED = 20;
/** @type {{event: {id: string, name: string, zone: string, reentry: boolean}, siblings: import("./checking.js").Sibling[], names: Record<string, string>, csrf: string}} `names`: of sections and rows, by their ids */
const page = data("gate-data");
const { event } = page,
  REFUSED_KEY = `frontrow-door-refused-${event.id}`;
/** @param {string} [timeZone] @returns {Intl.DateTimeFormat} the hall's time; the device's if it does not know that place */
function clockOf(timeZone) {
  try {
    return new Intl.DateTimeFormat(lang, {
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZone,
      numberingSystem: "latn"
    });
  } catch {
    return clockOf();
  }
}
const clock = clockOf(event.zone);
const able = await canVerify(),
  store = await Store.opened().catch((error) => {
    $("#no-store").hidden = false;
    throw error;
  }),
  link = new Link(event.id, page.csrf);
const guests = await Guests.opened(event.id);
const sync = new Sync(event.id, link, store, able, guests, event.reentry),
  checking = new Checking(event, page.siblings, link, store, sync, able, guests);
const measured = { scans: 0, last_ms: 0 };
let gate = localStorage.getItem(GATE_KEY) ?? "",
  silent = localStorage.getItem(SOUND_KEY) === "1",
  queued = 0;
/** Shows the ticket with a number for a person to decide: how many there are, null without a line.
 * @type {(number: string) => Promise<number | null>} */
let findTicket = async () => null;
/** @type {Promise<void>} */
let line = Promise.resolve();

/** @param {string} at */
const time = (at) => clock.format(new Date(at));

/** A seat as its ticket names it. @param {string} seat */
function seatText(seat) {
  const [first, ...rest] = seat.split("-"),
    last = rest.pop() ?? "";
  if (!last) return seat;
  const section = page.names?.[first] ?? first,
    row = page.names?.[`${first}-${rest.join("-")}`] ?? rest.join("-");
  return row ? placeName(section, rest.join("-") === "GA" ? "" : row, last) : `${section} ${last}`;
}

/** The sentence under a verdict. @param {Checked} found */
function detail(found) {
  switch (found.kind) {
    case "ok":
      if (found.why === "again") return t("Welcome back.");
      if (found.why === "disputed")
        return t("The buyer’s bank is taking the money back. The organiser lets this ticket in.");
      if (found.type) return found.type;
      return link.up ? "" : t("Checked offline.");
    case "left":
      return t("May come back with this ticket.");
    case "not_inside":
      return t("This ticket has not been admitted, or has left already.");
    case "duplicate":
      return found.first
        ? t("Admitted at {time}, gate {gate}.", { time: time(found.first.at), gate: found.first.gate })
        : "";
    case "wrong_event":
    case "wrong_day":
      return found.other
        ? t("This ticket is for {name}, {when}.", { name: found.other.name, when: found.other.when })
        : t("This ticket is for another event.");
    case "disputed":
      return t("The buyer’s bank is taking the money back. Send the person to the box office.");
    case "refunded":
      return t("This ticket was refunded; the seat may belong to someone else.");
    case "revoked":
      return found.why === "replaced"
        ? t("A newer ticket for this seat has been admitted.")
        : t("Cancelled, returned or exchanged.");
    case "forged":
      return t("This ticket was not sold here. Do not admit; call your supervisor.");
    case "old_code":
      return t("This is a screenshot. Ask for the live code on the phone.");
    case "unreadable":
      return t("Incomplete ticket code. Try again, or type the number printed under it.");
    case "unsure":
      if (found.why === "no_exit") return t("People who leave this event cannot come back.");
      if (found.why === "number") return t("Typed numbers need a connection. Scan the code instead.");
      if (found.why === "no_number") return t("No ticket of this show has this number.");
      return found.why === "browser"
        ? t("This browser cannot check tickets offline.")
        : t("This device has not been online for this event yet.");
    case "look_up":
      return t("A number alone lets nobody in. Compare the name below, then decide.");
  }
}

/** One code after the other, in the order they came. @param {string} text @param {number} seen_ms */
function take(text, seen_ms) {
  if (!text.trim() || queued >= MAX_QUEUED || !gate) return;
  queued++;
  line = line
    .then(() => checkOne(text, seen_ms))
    .catch((error) => console.error(error))
    .finally(() => {
      queued--;
    });
}

/** @param {string} text @param {number} seen_ms */
async function checkOne(text, seen_ms) {
  sync.scanned();
  let found = await checking.check(text, gate, leaving() ? "out" : "in");
  if (found.kind === "look_up") {
    const matches = await findTicket(found.ticket);
    if (matches !== 1) found = { ...found, kind: "unsure", why: matches === null ? "number" : "no_number" };
  }
  show(found.kind, seatText(found.seat), detail(found), !silent, found.name);
  showAddOns(found);
  measured.scans++;
  measured.last_ms = performance.now() - seen_ms;
  await note(found);
  await paint();
}

/** What hands out add-ons. @type {import("./add-ons.js").Counter} */
const counter = { guests, link, gate: () => gate, time, paint: () => paintState() };

/** The add-ons of whoever was scanned, below the verdict. @param {Checked} found */
function showAddOns(found) {
  const box = $("#verdict-add-ons"),
    some = found.booking && found.add_ons.length && ["ok", "duplicate"].includes(found.kind);
  box.replaceChildren(...(some ? [addOnList(found.booking, found.add_ons, counter)] : []));
  box.hidden = !some;
}

/** Whether people go out through this gate now. */
const leaving = () => sync.reentry && /** @type {HTMLInputElement} */ ($("#way-out")).checked;

/** Count what came of a scan and put it on the list. @param {Checked} found */
async function note(found) {
  const { counts } = sync;
  if (found.kind === "ok") {
    if (counts) counts.inside++;
    if (counts && found.why === "again") counts.outside--;
  } else if (found.kind === "left") {
    if (counts) counts.inside--;
    if (counts) counts.outside++;
  } else if (found.kind !== "unreadable" && found.kind !== "look_up")
    localStorage.setItem(REFUSED_KEY, String(refused() + 1));
  const at = new Date(link.now_ms()).toISOString();
  await store.remember({
    event: event.id,
    at,
    kind: found.kind,
    heading: heading(found.kind),
    seat: found.seat,
    ticket: found.ticket,
    scan: found.scan
  });
}

const refused = () => Number(localStorage.getItem(REFUSED_KEY)) || 0;

/** Everything on the page that follows from what we know. */
async function paint() {
  await Promise.all([paintState(), paintRecent(), paintConflicts()]);
  $("#way").hidden = !sync.reentry;
  const { counts } = sync,
    left = counts ? Math.max(0, counts.tickets - counts.inside - counts.outside) : null;
  $("#inside").textContent = counts ? number(counts.inside) : "–";
  $("#left").textContent = left === null ? "–" : number(left);
  $("#refused").textContent = number(refused());
  $("#gates").replaceChildren(
    ...(counts?.gates ?? []).map((one) =>
      h(
        "li",
        { class: "row between" },
        h("bdi", {}, one.gate),
        h(
          "span",
          { class: "num" },
          number(one.tickets),
          sync.reentry ? ` · ${t("out: {n}", { n: number(one.exits) })}` : ""
        )
      )
    )
  );
  $("#gate-names").replaceChildren(...(counts?.gates ?? []).map((one) => h("option", { value: one.gate })));
}

async function paintState() {
  const waiting = (await store.countWaiting(event.id)) + guests.waiting,
    chip = $("#state");
  const down = link.down_ms === null ? "" : time(new Date(link.down_ms).toISOString());
  chip.textContent = link.signed_out ? t("Signed out") : down ? t("Offline since {time}", { time: down }) : t("Online");
  chip.className = `chip ${link.signed_out ? "bad" : down ? "warn" : "ok"}`;
  $("#waiting").hidden = waiting === 0;
  $("#waiting").textContent = t("Waiting to be sent: {n}", { n: number(waiting) });
  $("#again").hidden = !link.signed_out;
}

async function paintRecent() {
  const rows = await store.recent(event.id);
  $("#recent").replaceChildren(
    ...rows.map((one) =>
      h(
        "li",
        { "data-verdict": one.kind },
        h("span", { class: "dot", "aria-hidden": "true" }),
        h("span", { class: "num muted" }, time(one.at)),
        h("span", {}, h("b", {}, one.heading), one.seat ? ` ${seatText(one.seat)}` : ""),
        ...(one.kind === "ok" && one.scan
          ? [h("button", { class: "btn quiet sm", onclick: () => undo(one) }, t("Undo"))]
          : [])
      )
    )
  );
  $("#no-scans").hidden = rows.length > 0;
}

/** @param {import("./store.js").Recent} one */
async function undo(one) {
  const name = seatText(one.seat) || one.ticket;
  if (!confirm(t("Undo this admission? {seat} can enter again.", { seat: name }))) return;
  const undone = await checking.undo(one.ticket, one.scan);
  if (undone) {
    if (sync.counts) sync.counts.inside = Math.max(0, sync.counts.inside - 1);
    await store.rewrite(one, t("Undone"));
  }
  say(undone ? t("Undone") : t("This needs a connection."));
  if (!undone) $("#verdict-detail").textContent = t("This needs a connection.");
  await paint();
}

async function paintConflicts() {
  const found = await store.conflicts(event.id),
    box = $("#conflicts");
  const was = box.childElementCount;
  box.replaceChildren(
    ...found.map((one) =>
      h(
        "li",
        { class: "note bad row between" },
        h(
          "span",
          {},
          h("b", {}, conflictText(one.kind)),
          ` ${one.kind === "add_on" ? one.seat : seatText(one.seat) || one.ticket}: `,
          one.scans.map((seen) => `${time(seen.at)} ${seen.gate}`).join(" · ")
        ),
        h(
          "button",
          {
            class: "btn quiet sm",
            onclick: async () => {
              await store.settle(one);
              await paint();
            }
          },
          t("Done")
        )
      )
    )
  );
  if (found.length > was) say(t("Tickets admitted twice or by mistake: {n}", { n: found.length }));
}

/** @param {"twice" | "revoked" | "unknown" | "add_on"} kind */
function conflictText(kind) {
  if (kind === "add_on") return t("Handed out, but already used or refunded:");
  if (kind === "twice") return t("Admitted twice:");
  return kind === "revoked" ? t("Admitted, but no longer valid:") : t("Admitted, but unknown:");
}

/** A hand scanner types wherever the cursor is; typing goes to the field. @param {KeyboardEvent} key */
function typed(key) {
  const on = /** @type {HTMLElement} */ (key.target);
  if (
    key.key.length !== 1 ||
    key.key === " " ||
    key.ctrlKey ||
    key.altKey ||
    key.metaKey ||
    on.closest("input, select, textarea, dialog")
  )
    return;
  $("#code").focus();
}

/** @param {Scanner} scanner */
async function openCamera(scanner) {
  const fine = await scanner.start(),
    cameras = fine ? await scanner.cameras() : [];
  $("#no-camera").hidden = fine;
  $("#camera").hidden = !fine;
  $("#which").hidden = cameras.length < 2;
  $("#which select").replaceChildren(
    ...cameras.map((one) =>
      h("option", { value: one.id, selected: one.id === scanner.track?.getSettings().deviceId }, one.name)
    )
  );
}

function begin() {
  $("#setup").hidden = true;
  $("#work").hidden = false;
  for (const shown of document.querySelectorAll(".gate-name")) shown.textContent = gate;
  const scanner = new Scanner($("#camera video"), scanWorker(), take);
  Object.assign(/** @type {any} */ (window), { frontrow: { gate: { measured, scanner, sync, link } } });
  scanner.addEventListener("failed", () => {
    $("#no-camera").hidden = false;
  });
  scanner.addEventListener("change", () => {
    $("#torch").hidden = !scanner.hasTorch; // another camera may have none, and starts without light
    $("#torch").setAttribute("aria-pressed", "false");
  });
  $("#torch").onclick = async () => {
    const on = $("#torch").getAttribute("aria-pressed") !== "true",
      lit = await scanner.torch(on);
    if (lit) $("#torch").setAttribute("aria-pressed", String(on));
    else say(t("The light does not work on this device."));
  };
  $("#which select").onchange = () => scanner.choose(/** @type {HTMLSelectElement} */ ($("#which select")).value);
  $("#retry").onclick = () => openCamera(scanner);
  openCamera(scanner);
  findTicket = openLookUp(link, checking, {
    gate: () => gate,
    seat: seatText,
    time,
    note,
    paint,
    again: () => sync.reentry,
    leaving,
    counter
  });
  paint();
}

$("#setup").onsubmit = (sent) => {
  sent.preventDefault();
  const name = /** @type {HTMLInputElement} */ ($("#gate")).value.trim();
  if (!name) return;
  gate = name;
  localStorage.setItem(GATE_KEY, gate);
  unlockSound();
  begin();
};
$("#code-form").onsubmit = (sent) => {
  sent.preventDefault();
  const field = /** @type {HTMLInputElement} */ ($("#code"));
  take(field.value, performance.now());
  field.value = "";
};
$("#rename").onclick = () => {
  localStorage.removeItem(GATE_KEY);
  location.reload();
};
const loud = /** @type {HTMLInputElement} */ ($("#loud"));
loud.checked = !silent;
loud.onchange = () => {
  silent = !loud.checked;
  localStorage.setItem(SOUND_KEY, silent ? "1" : "0");
};
$("#forget").onclick = async () => {
  const waiting = (await store.countWaiting(event.id)) + guests.waiting;
  if (
    !confirm(
      waiting
        ? t("Scans not sent yet: {n}. Delete them too?", { n: waiting })
        : t("Remove keys, lists and scans from this device?")
    )
  )
    return;
  await Promise.all([store.forget(), guests.forget(), forgetPages()]);
  localStorage.clear();
  location.assign("/door");
};
document.addEventListener("keydown", typed);
document.addEventListener("pointerdown", unlockSound);
document.addEventListener("keydown", unlockSound);
link.addEventListener("change", paintState);
sync.addEventListener("change", paint);
$("#able").hidden = able;
$("#tap").hidden = silent || !gate;
/** @type {HTMLInputElement} */ ($("#gate")).value = gate;
offerInstall($("#install"));
if (gate) begin();
else {
  $("#setup").hidden = false;
  await paint();
}
keepOffline();
await sync.start();
