// @ts-check
/** The seats page: map and list show the same model; picking is local, going on holds all seats at once or none. */
import { $, ask, data, h, say } from "./dom.js";
import { describe, priceAt, priceRange } from "./seatmap/element.js";
import { SeatFeed } from "./seatmap/feed.js";
import { SeatGrid } from "./seatmap/grid.js";
import { FREE, SeatModel } from "./seatmap/model.js";
import "./timer.js";
import "./visit.js";
import { lang, money, number, priced, t, tn } from "./words.js";

const page = data("page-data"),
  HOLD_TRIES = 5,
  LIST_MOST = 80,
  COUNTS_MS = 800;
/** @type {Record<string, () => string>} */
const REFUSALS = {
  seats_taken: () => t("Someone was faster: these seats are taken."),
  no_such_seats: () => t("No matching seats are free. Try another price, fewer seats, or seats apart."),
  cap_reached: () => t("That would be more tickets than one person may have."),
  lonely_seat: () => t("This choice would leave a single seat alone. Please move by one seat."),
  not_on_sale: () => t("The sale is paused or over at the moment."),
  pass_ended: () => t("Your visit has ended"),
  visit_ended: () => t("Your visit ended with your purchase. Enter the waiting room again to buy more.")
};
const map = /** @type {import("./seatmap/element.js").FrSeatmap} */ (document.querySelector("fr-seatmap"));
const [doc, states] = await Promise.all([
  fetch(page.map).then((r) => r.json()),
  fetch(`${page.base}/seats.bin`).then((r) => r.arrayBuffer())
]);
/** Let the browser answer and paint before the next piece of work. */
const breathe = () => new Promise((go) => setTimeout(go));
for (const tier of doc.tiers) {
  const [light, dark] = page.colours?.[tier.key] ?? [];
  if (light) document.documentElement.style.setProperty(`--tier-${tier.id}`, `light-dark(${light}, ${dark})`);
}
const model = new SeatModel(doc);
model.applySnapshot(states);
await breathe();
map.start(model);
await breathe();
const grid = new SeatGrid(
  $("#grid"),
  model,
  (i) => pick(i),
  (i) => {
    map.view.options.focus = i;
    map.view.request();
  }
);
performance.mark("seatmap-interactive");

const price = /** @type {HTMLInputElement} */ ($("#price")),
  stepFree = /** @type {HTMLInputElement} */ ($("#step-free"));
const count = /** @type {HTMLSelectElement} */ ($("#count")),
  apart = /** @type {HTMLInputElement} */ ($("#apart"));
const prices = [...new Set(doc.tiers.map((/** @type {any} */ tier) => tier.price))].sort((a, b) => a - b);
price.min = "0";
price.max = String(prices.length - 1);
price.step = "1";
price.value = price.max;
const maxPrice = () => prices[Number(price.value)];
/** The seats that are held already, in this tab or another: they count as free for their owner. */
const held = new Set(
  page.held ? [...Array(model.n).keys()].filter((i) => page.held.seats.includes(model.seat(i).id)) : []
);
for (const i of held) model.mine.add(i);
/** Whether this visitor can have a seat. @param {number} i */
const canHave = (i) => model.state[i] === FREE || held.has(i);
let opened = -1,
  counting = 0,
  busy = false;

/** @param {string} text @param {string} [kind] @param {...Node} more */
function note(text, kind = "warn", ...more) {
  $("#notes").replaceChildren(h("div", { class: `note ${kind} stack tight` }, h("p", {}, text), ...more));
  say(text);
  $("#scroll").scrollTop = 0;
}
const unnote = () => $("#notes").replaceChildren();

/** The sections that have what is asked for. */
const fitting = () => model.sections.map((one, s) => ({ one, s })).filter(({ one }) => one.fit);
/** @param {ReturnType<typeof fitting>} found */
function countFree(found) {
  const free = found.reduce((sum, { one }) => sum + one.fit, 0),
    none = !model.sections.some((one) => one.free);
  $("#count-free").textContent = free ? tn("{n} seat free", "{n} seats free", free) : "";
  $("#soldout").hidden = !none;
  $("#choosing").hidden = none;
  $("#nothing").hidden = none || model.mine.size > 0;
  $("#nomatch").hidden = none || found.length > 0;
}
/** The lowest price among a section's seats that match. @param {import("./seatmap/model.js").Section} one */
const lowest = (one) =>
  Math.min(...doc.tiers.flatMap((/** @type {any} */ tier, /** @type {number} */ n) => (one.fits[n] ? tier.price : [])));
/** @param {import("./seatmap/model.js").Section} one */
const freeOf = (one) => ` · ${t("{n} free", { n: number(one.fit) })}`;

const byName = new Intl.Collator(lang, { numeric: true });
function listSections() {
  const most = maxPrice();
  price.setAttribute("aria-valuetext", priceAt(most, model));
  $("#price-now").textContent = priceAt(most, model);
  if (model.maxPrice !== most || model.stepFree !== stepFree.checked) {
    model.filter(most, stepFree.checked);
    map.view.invalidate();
    grid.filter();
  }
  const found = fitting()
    .map((row) => ({ ...row, low: lowest(row.one) }))
    .sort((a, b) => a.low - b.low || byName.compare(a.one.name, b.one.name));
  countFree(found);
  $("#list").replaceChildren(
    ...found
      .slice(0, LIST_MOST)
      .map(({ one, s, low }) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", "data-section": s, onclick: () => open(s, true) },
            h("span", { class: `sw t${one.tier % 6}`, "aria-hidden": "true" }),
            h(
              "span",
              {},
              h("strong", {}, t("Section {section}", { section: one.name })),
              h("span", { class: "tiny num muted", "data-free": s }, freeOf(one))
            ),
            h("span", { class: "num" }, priceAt(low, model))
          )
        )
      )
  );
}

/** @param {number} s @param {boolean} [move] take the keyboard there @param {boolean} [fly] take the map there */
function open(s, move = false, fly = true) {
  const one = model.sections[s],
    tier = doc.tiers[one.tier];
  opened = s;
  if (fly) map.flyTo(s);
  $("#sections").hidden = true;
  $("#gridbox").hidden = false;
  $("#grid-title").textContent = t("Section {section}", { section: one.name });
  $("#grid-sub").textContent = `${tier.name} · ${priceRange(one, model)} · ${t("{n} free", { n: number(one.fit) })}`;
  if (one.area) {
    grid.close();
    $("#grid").replaceChildren(areaForm(one));
    $("#grid").setAttribute("role", "group");
    $("#grid").setAttribute("aria-label", one.name);
  } else {
    $("#grid").setAttribute("role", "grid");
    grid.open(s);
  }
  $("#scroll").scrollTop = 0;
  if (move) $("#grid-title").focus({ preventScroll: true });
}
/** @param {import("./seatmap/model.js").Section} one */
function areaForm(one) {
  const many = h("input", { id: "places", type: "number", min: "1", max: String(page.most), value: "2" });
  return h(
    "form",
    {
      class: "bestform",
      onsubmit: (/** @type {Event} */ e) => {
        e.preventDefault();
        hold(
          { best: { count: Number(/** @type {HTMLInputElement} */ (many).value), sections: [one.id], standing: true } },
          []
        );
      }
    },
    h("div", {}, h("label", { for: "places" }, t("How many standing places?")), many),
    h("button", { class: "btn primary" }, t("Hold these seats"))
  );
}
function back() {
  opened = -1;
  sheet("half");
  grid.close();
  $("#sections").hidden = false;
  $("#gridbox").hidden = true;
  map.fit();
  listSections();
}

/** @param {number} i */
function pick(i) {
  const seat = model.seat(i);
  if (model.mine.has(i)) {
    model.mine.delete(i);
    refresh([i]);
    say(t("Removed."));
    return;
  }
  if (!canHave(i)) {
    say(describe(seat));
    return;
  }
  if (model.mine.size >= page.most) {
    note(t("That would be more tickets than one person may have."));
    return;
  }
  model.mine.add(i);
  unnote();
  refresh([i]);
  say(describe(model.seat(i)));
}

/** Show again what changed. @param {number[]} changed */
function refresh(changed) {
  map.update(changed);
  grid.refresh(changed);
  basket();
  if (!counting) counting = window.setTimeout(counts, COUNTS_MS);
}
function counts() {
  counting = 0;
  countFree(fitting());
  for (const box of document.querySelectorAll("[data-free]")) {
    const text = freeOf(model.sections[Number(/** @type {HTMLElement} */ (box).dataset.free)]);
    if (box.textContent !== text) box.textContent = text;
  }
}
let shownBasket = "";
function basket() {
  const mine = [...model.mine],
    key = mine.join();
  if (key === shownBasket) return;
  shownBasket = key;
  $("#basket").hidden = !mine.length;
  $("#seats").toggleAttribute("data-changed", mine.length > 0 && !isHeld(mine));
  $("#nothing").hidden = mine.length > 0 || !$("#soldout").hidden;
  $("#picked").replaceChildren(
    ...mine.map((i) => {
      const seat = model.seat(i);
      return h(
        "li",
        {},
        h("span", { class: "small" }, h("strong", {}, `${seat.section.name} · ${seat.row} · ${seat.number}`)),
        h("span", { class: "num" }, priced(seat.tier.price, seat.tier.fee ?? 0, page.currency)),
        h(
          "button",
          {
            class: "x",
            type: "button",
            "aria-label": t("Remove {seat}", { seat: describe(seat) }),
            onclick: () => pick(i)
          },
          "×"
        )
      );
    })
  );
  $("#total").textContent = money(
    mine.reduce((sum, i) => sum + model.seat(i).tier.price + (model.seat(i).tier.fee ?? 0), page.bookingFees),
    page.currency
  );
  $("#go").textContent = isHeld(mine)
    ? t("Continue to checkout")
    : tn("Continue with {n} seat", "Continue with {n} seats", mine.length);
}
/** Whether the choice is what is held already. @param {number[]} mine */
const isHeld = (mine) => held.size === mine.length && mine.every((i) => held.has(i));

/** Hold seats: all or none. @param {any} body @param {number[]} wanted */
async function hold(body, wanted) {
  if (busy) return;
  busy = true;
  const button = /** @type {HTMLButtonElement} */ ($("#go"));
  button.setAttribute("aria-disabled", "true");
  const key = crypto.randomUUID?.() ?? String(Math.random());
  for (let tries = 0; tries < HOLD_TRIES; tries++) {
    const answer = await ask(`${page.base}/holds`, { method: "POST", body: { ...body, replace: true }, key });
    if (answer.ok) {
      location.assign(`/checkout/${answer.body.booking}`);
      return;
    }
    if (answer.status === 401) {
      location.assign(`${page.base}/room/`);
      return;
    }
    if (![0, 429, 503].includes(answer.status)) {
      refused(answer.body, wanted);
      break;
    }
    note(t("The connection is slow. Retrying …"));
    await new Promise((go) => setTimeout(go, 1000 * (answer.after_s || 1 + tries)));
    if (tries === HOLD_TRIES - 1) note(t("That did not work. Please try again."));
  }
  busy = false;
  button.removeAttribute("aria-disabled");
}
/** @param {any} problem @param {number[]} wanted */
function refused(problem, wanted) {
  const text =
    problem.code === "no_such_seats" && apart.checked
      ? t("No matching seats are free. Try another price or fewer seats.")
      : (REFUSALS[problem.code]?.() ?? t("That did not work. Please try again."));
  if (problem.code === "visit_ended" || problem.code === "pass_ended") {
    note(
      text,
      "warn",
      h("p", {}, h("a", { class: "btn quiet sm", href: `${page.base}/room/` }, t("Enter the waiting room")))
    );
    return;
  }
  if (problem.code !== "seats_taken") {
    note(text);
    return;
  }
  const lost = new Set(problem.seats ?? []),
    gone = wanted.filter((i) => lost.has(i) || lost.has(model.seat(i).id));
  for (const i of gone) model.lose(i);
  refresh(gone);
  offer(text, gone);
}
/** Offer other seats for lost ones, with their price; what is chosen besides stays chosen. @param {string} text @param {number[]} lost */
function offer(text, lost) {
  const near = lost.length ? model.near(lost) : [];
  if (!near.length) {
    note(text);
    return;
  }
  const seats = near.map((i) => model.seat(i)),
    [first, last] = [seats[0], seats[seats.length - 1]],
    name = `${first.section.name} · ${first.row} · ${first.number}${near.length > 1 ? `–${last.number}` : ""}`,
    sum = (/** @type {(seat: import("./seatmap/model.js").SeatInfo) => number} */ of) =>
      seats.reduce((all, seat) => all + of(seat), 0),
    cost = priced(
      sum((seat) => seat.tier.price),
      sum((seat) => seat.tier.fee ?? 0),
      page.currency
    );
  note(
    text,
    "warn",
    h(
      "p",
      {},
      h(
        "button",
        {
          class: "btn quiet sm",
          type: "button",
          id: "instead",
          onclick: () => {
            for (const i of near) if (model.state[i] === FREE) model.mine.add(i);
            unnote();
            refresh(near);
            open(model.section[near[0]]);
            say(t("Chosen: {seats}", { seats: name }));
            $("#go").focus();
          }
        },
        t("Take {seats} instead, {price}", { seats: name, price: cost })
      )
    )
  );
}

map.addEventListener("seat-pick", (e) => pick(/** @type {CustomEvent} */ (e).detail));
map.addEventListener("section-pick", (e) => {
  const s = /** @type {CustomEvent} */ (e).detail;
  if (s !== opened) open(s, false, false);
  // who picks on the map gets more of it; once it rests, because another size costs a moment
  if (!model.sections[s].area) map.addEventListener("landed", () => sheet("low"), { once: true });
});
map.addEventListener("tip", (e) => {
  const about = /** @type {CustomEvent} */ (e).detail,
    tip = $("#tip");
  tip.hidden = !about;
  if (!about) return;
  tip.replaceChildren(h("b", {}, about.title), about.text);
  tip.style.left = `${Math.min(map.view.w - 110, Math.max(110, about.x))}px`;
  tip.style.top = `${Math.max(74, about.y)}px`;
});
$("#back").addEventListener("click", back);
$("#all-seats").addEventListener("click", () => {
  price.value = price.max;
  stepFree.checked = false;
  listSections();
  price.focus();
});
price.addEventListener("input", listSections);
stepFree.addEventListener("change", listSections);
$("#best").addEventListener("submit", (e) => {
  e.preventDefault();
  hold(
    {
      best: {
        count: Number(count.value),
        max_price_minor: maxPrice(),
        step_free: stepFree.checked,
        apart_ok: apart.checked
      }
    },
    []
  );
});
$("#go").addEventListener("click", () => {
  const mine = [...model.mine];
  if (isHeld(mine)) location.assign(`/checkout/${page.held.booking}`);
  else if (mine.length) hold({ seats: mine.map((i) => model.seat(i).id) }, mine);
});
$("#view").addEventListener("click", () => {
  const list = $("#seats").toggleAttribute("data-list");
  $("#view").setAttribute("aria-pressed", String(list));
  try {
    localStorage.setItem("frontrow.list", list ? "1" : "");
  } catch {
    /* private mode */
  }
});
const SHEETS = ["low", "half", "high"],
  SWIPED_PX = 24;
/** On a phone the list is a sheet over the map's lower part. @param {string} how low, half or high */
function sheet(how) {
  $("#seats").dataset.sheet = how;
  $("#grip").setAttribute("aria-expanded", String(how !== "low"));
}
const sheetNow = () => SHEETS.indexOf($("#seats").dataset.sheet ?? "half");
let swipe = NaN;
$("#grip").addEventListener("pointerdown", (e) => {
  swipe = e.clientY;
  $("#grip").setPointerCapture(e.pointerId);
});
$("#grip").addEventListener("pointerup", (e) => {
  const by = swipe - e.clientY;
  swipe = NaN;
  if (Math.abs(by) < SWIPED_PX) return;
  swipe = by;
  sheet(SHEETS[Math.min(2, Math.max(0, sheetNow() + Math.sign(by)))]);
});
$("#grip").addEventListener("click", () => {
  if (Number.isNaN(swipe)) sheet(sheetNow() > 0 ? "low" : "half");
  swipe = NaN;
});
for (const button of document.querySelectorAll("[data-zoom]"))
  button.addEventListener("click", () => {
    const how = /** @type {HTMLElement} */ (button).dataset.zoom;
    if (how === "fit") back();
    else map.zoom(how === "in" ? 1.7 : 1 / 1.7);
  });
for (const sw of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-tier]"))) {
  const found = doc.tiers.find((/** @type {any} */ tier) => tier.key === sw.dataset.tier);
  sw.classList.add(`t${(found?.id ?? 0) % 6}`);
}
try {
  if (localStorage.getItem("frontrow.list")) $("#view").click();
} catch {
  /* private mode */
}

const feed = new SeatFeed(model, page.base, {
  change(changed) {
    const lost = changed.filter((i) => model.mine.has(i) && !canHave(i));
    for (const i of lost) model.mine.delete(i);
    refresh(changed);
    if (lost.length && !busy) offer(t("Someone was faster: these seats are taken."), lost);
  },
  mode(mode) {
    const chip = $("#mode");
    chip.className = `chip ${mode === "live" ? "ok" : "warn"}`;
    chip.textContent = mode === "live" ? t("Live") : mode === "polling" ? t("Slower updates") : t("Reconnecting");
  }
});
feed.start();
await breathe();
listSections();
refresh([...held]);
document.querySelector("#held fr-timer")?.addEventListener("over", () => location.reload());
addEventListener("pageshow", (e) => {
  if (e.persisted) location.reload(); // back from the checkout: the seats may be held now
});
// what tests and the benchmark look at
Object.assign(window, { frontrow: { model, map, feed, pick, open } });
