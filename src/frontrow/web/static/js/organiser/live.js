// @ts-check
/** The live sale: one frame a second into tiles, charts and the heat map; told aloud once a minute at most. */
import { $, ask, data, h, say } from "../dom.js";
import { lang, money, number, t } from "../words.js";
import { Charts, clockAt, fromHistory } from "./charts.js";
import { Heat } from "./heat.js";
import { Levers } from "./levers.js";
import { FiguresStream } from "./stream.js";
const TOLD_EVERY_MS = 60_000,
  PERCENT = 100,
  BAR = 1000,
  ACTIVITY_EVERY_MS = 10_000;

const found = data("found"),
  root = $("#live"),
  levers = document.querySelector("[data-opens]")
    ? new Levers(found.base, found.room, root.dataset.csrf ?? "", () => activity())
    : null;
const share = new Intl.NumberFormat(lang, { style: "percent", maximumFractionDigits: 1, numberingSystem: "latn" });
const rate = new Intl.NumberFormat(lang, { maximumFractionDigits: 1, numberingSystem: "latn" });
const exact = clockAt(found.zone, true),
  minute = clockAt(found.zone),
  day = new Intl.DateTimeFormat(lang, {
    day: "numeric",
    month: "short",
    numberingSystem: "latn",
    timeZone: found.zone
  });
const select = /** @type {HTMLSelectElement} */ ($("#section"));
const span_s = () => Number(/** @type {HTMLInputElement} */ ($("#spans :checked")).value) * 60;
const charts = new Charts(fromHistory(found.history), found.zone, span_s());
const heat = new Heat($("#heat"), (name) => {
  select.value = name;
  sections();
});
let frame = found.first,
  toldAt = Date.now(),
  wasPaused = /** @type {boolean | null} */ (null);

/** @param {string} name @param {string} value @param {string} below */
function tile(name, value, below) {
  put(`[data-tile=${name}]`, value);
  put(`[data-below=${name}]`, below || "\u00a0");
}

/** @param {string} selector @param {string} text */
function put(selector, text) {
  const cell = $(selector);
  if (cell.textContent !== text) cell.textContent = text;
}

/** @param {any} times */
const ms = (times) => (times ? took(times.p50_ms) : "–");
/** @param {number} n milliseconds */
const took = (n) => (n < 1000 ? t("{n} ms", { n: rate.format(n) }) : t("{n} s", { n: rate.format(n / 1000) }));

/** @param {any} next */
function show(next) {
  frame = next;
  const { room, seats } = next,
    paid = next.money[0],
    offered = seats.seats - seats.withheld;
  tile(
    "revenue",
    paid
      ? money(paid.captured_minor - paid.refunded_minor - paid.refunds_open_minor, paid.currency)
      : money(0, found.currency),
    next.whole_at_us < next.at_us
      ? t("after refunds, at {time}", { time: exact.format(next.whole_at_us / 1000) })
      : t("after refunds")
  );
  tile(
    "share",
    offered > 0 ? share.format(seats.sold / offered) : "–",
    t("{sold} of {all} seats, {held} held", {
      sold: number(seats.sold),
      all: number(offered),
      held: number(seats.held)
    })
  );
  tile(
    "admitted",
    room ? number(room.admitted) : "–",
    !room
      ? ""
      : levers
        ? t("{n} per second now, at most {most}", {
            n: rate.format(room.admitted_per_s),
            most: number(room.rate_per_s)
          })
        : t("{n} per second now", { n: rate.format(room.admitted_per_s) })
  );
  tile(
    "waiting",
    room ? number(room.waiting) : "–",
    room ? t("{n} inside", { n: number(room.active) }) : t("no waiting room here")
  );
  forecast();
  mix();
  phase();
  health();
  speeds();
  sections();
}

/** A time of today as the clock shows it, another with its day. @param {number} us */
function clock(us) {
  const at = us / 1000,
    date = day.format(at);
  return date === day.format(frame.at_us / 1000) ? minute.format(at) : `${date}, ${minute.format(at)}`;
}

/** When it is sold out at this pace; nothing while nobody can know. */
function forecast() {
  const line = $("#forecast"),
    told = frame.forecast;
  line.hidden = !told;
  if (!told) return;
  const [about, from, to] = [told.sold_out_at_us, told.earliest_us, told.latest_us].map(clock);
  put(
    "#forecast",
    from === to
      ? t("Sold out about {time} at this pace", { time: about })
      : t("Sold out about {time} at this pace (between {from} and {to})", { time: about, from, to })
  );
}

/** Seats and money by price. */
function mix() {
  for (const tier of frame.tiers) {
    const row = document.querySelector(`[data-tier="${CSS.escape(tier.name)}"]`);
    if (!row) continue;
    const of = Math.max(1, tier.seats - tier.withheld),
      [sold, held] = row.querySelectorAll("rect");
    sold.setAttribute("width", String((BAR * tier.sold) / of));
    held.setAttribute("x", String((BAR * tier.sold) / of));
    held.setAttribute("width", String((BAR * tier.held) / of));
    const texts = {
      sold: t("{sold} of {all}", { sold: number(tier.sold), all: number(tier.seats - tier.withheld) }),
      held: number(tier.held),
      revenue: money(tier.sold_minor, found.currency)
    };
    for (const [name, text] of Object.entries(texts)) {
      const cell = $(`[data-cell=${name}]`, row);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}

/** What operators look at, folded away; its summary says whether it is worth opening. */
function health() {
  const { latency, payment_success: success } = frame,
    ticket = latency.hold_to_ticket;
  const paid = success == null ? "–" : share.format(success);
  tile("payments", paid, success == null ? t("none yet") : t("of all completed payments"));
  tile(
    "hold",
    ms(latency.hold),
    latency.hold ? t("99% within {time}", { time: took(latency.hold.p99_ms) }) : t("nobody in the last minute")
  );
  tile(
    "ticket",
    ms(ticket),
    ticket ? t("99% within {time}", { time: took(ticket.p99_ms) }) : t("none in the last hour")
  );
  put("#health-line", t("Payments {share}, seat holds {time}", { share: paid, time: ms(latency.hold) }));
}

function phase() {
  const line = frame.room?.phase ?? "",
    paused = frame.paused || line === "paused" || line === "queue_all",
    chip = $("#phase");
  const selling = frame.status === "on_sale" && !paused && line !== "closed" && line !== "prequeue";
  chip.className = `chip ${selling ? "ok" : "warn"}`;
  put(
    "#phase",
    frame.paused
      ? t("Sale paused")
      : paused
        ? t("Queue paused")
        : line === "prequeue"
          ? t("Opens soon")
          : line === "closed"
            ? t("Queue closed")
            : frame.status === "on_sale"
              ? t("Selling")
              : frame.status === "sold_out"
                ? t("Sold out")
                : t("Not on sale")
  );
  levers?.show(
    {
      ...(frame.room && { rate: frame.room.rate_per_s, capacity: frame.room.capacity }),
      waiting: frame.room?.waiting ?? 0,
      active: frame.room?.active ?? 0,
      held: frame.seats.held,
      free: frame.seats.free
    },
    paused
  );
  if (wasPaused !== null && wasPaused !== paused) say(paused ? t("The sale is paused.") : t("The sale has resumed."));
  wasPaused = paused;
}

const NAMES = {
  join: () => t("Join the queue"),
  status: () => t("Check a place"),
  claim: () => t("Enter the sale"),
  hold: () => t("Seat hold latency"),
  pay: () => t("Pay"),
  event: () => t("View the event")
};
function speeds() {
  const rows = Object.entries(NAMES).filter(([name]) => frame.latency[name]);
  const text = rows.map(([name]) => name + ms(frame.latency[name]) + frame.latency[name].p99_ms).join();
  const body = $("#speeds tbody");
  if (body.dataset.text === text) return;
  body.dataset.text = text;
  body.replaceChildren(
    ...(rows.length
      ? rows.map(([name, words]) =>
          h(
            "tr",
            {},
            h("td", {}, words()),
            h("td", { class: "r num" }, ms(frame.latency[name])),
            h("td", { class: "r num" }, took(frame.latency[name].p99_ms))
          )
        )
      : [h("tr", {}, h("td", { colspan: 3, class: "muted" }, t("No requests in the last minute.")))])
  );
}

function sections() {
  const groups = /** @type {import("./heat.js").Group[]} */ (frame.sections);
  if (select.options.length !== groups.length)
    select.replaceChildren(...groups.map((one) => h("option", { value: one.name }, one.name)));
  const one = groups.find((group) => group.name === select.value) ?? groups[0];
  heat.show(groups, one?.name ?? "");
  if (!one) return;
  for (const name of /** @type {const} */ (["sold", "held", "free", "withheld"]))
    put(`[data-section=${name}]`, number(one[name]));
  put(
    "[data-section=share]",
    one.seats > one.withheld
      ? share.format(Math.round((one.sold / (one.seats - one.withheld)) * PERCENT) / PERCENT)
      : "–"
  );
}

/** @param {any} next */
function live(next) {
  show(next);
  const { room, seats, latency } = next;
  charts.push({
    at_s: next.at_us / 1e6,
    waiting: room?.waiting ?? null,
    active: room?.active ?? null,
    admitted: room?.admitted_per_s ?? null,
    held: seats.held,
    sold: seats.sold,
    selling: next.seats_sold_per_s,
    p50: latency.hold?.p50_ms ?? null,
    p99: latency.hold?.p99_ms ?? null
  });
  if (Date.now() - toldAt < TOLD_EVERY_MS) return;
  toldAt = Date.now();
  say(
    t("{waiting} waiting, {sold} seats sold, {money} so far.", {
      waiting: number(room?.waiting ?? 0),
      sold: number(seats.sold),
      money: $("[data-tile=revenue]").textContent ?? ""
    })
  );
}

/** @param {import("./stream.js").Mode} mode @param {boolean} old */
function mode(mode, old) {
  const chip = $("#link"),
    note = $("#old");
  const words = {
    live: t("Live"),
    polling: t("Every few seconds"),
    offline: t("No connection"),
    "signed-out": t("Signed out")
  };
  chip.className = `chip ${mode === "live" ? "ok" : mode === "polling" ? "warn" : "bad"}`;
  put("#link", words[mode]);
  const text =
    mode === "signed-out"
      ? t("You are signed out. Reload this page to sign in.")
      : t("These figures are from {time}. They update again as soon as the server responds.", {
          time: exact.format(frame.at_us / 1000)
        });
  if (note.hidden === old || (old && note.textContent !== text)) {
    note.textContent = text;
    note.hidden = !old;
  }
  root.toggleAttribute("data-old", old);
}

/** What the team has changed, as the page had it at first: the server says it in words. */
async function activity() {
  const list = document.querySelector("#acts");
  if (!list || document.hidden) return;
  const { ok, body } = await ask(`${location.pathname}/activity.json`);
  if (!ok || JSON.stringify(body) === told) return;
  told = JSON.stringify(body);
  list.replaceChildren(
    .../** @type {any[]} */ (body).map((one) =>
      h(
        "li",
        {},
        h("b", {}, one.what),
        h("span", { class: "detail" }, ...one.detail.map((/** @type {string} */ each) => h("bdi", {}, each))),
        h("span", { class: "muted" }, h("bdi", {}, one.who), " · ", h("bdi", { class: "num" }, one.when))
      )
    )
  );
  $("#no-acts").hidden = body.length > 0;
}
let told = "";

charts.add(
  "c-line",
  [
    { name: "waiting", colour: "--tier-1", label: t("Waiting") },
    { name: "active", colour: "--tier-4", label: t("Inside") }
  ],
  true
);
charts.add("c-rate", [
  { name: "admitted", colour: "--tier-3", label: t("People per second") },
  { name: "selling", colour: "--tier-2", label: t("Seats per second") }
]);
charts.add(
  "c-seats",
  [
    { name: "sold", colour: "--tier-0", label: t("Sold") },
    { name: "held", colour: "--tier-5", label: t("Held") }
  ],
  true
);
charts.add("c-times", [
  { name: "p50", colour: "--tier-1", label: t("Median") },
  { name: "p99", colour: "--tier-2", label: t("99% within") }
]);
show(frame);
select.addEventListener("change", sections);
$("#spans").addEventListener("change", () => charts.show(span_s()));
setInterval(activity, ACTIVITY_EVERY_MS);
heat.draw(found.map).then(sections);
new FiguresStream(`${found.base}/figures`, { frame: live, mode }).start();
Object.assign(window, { live: { charts, levers } });
export {};
