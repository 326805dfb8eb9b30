// @ts-check
/** The seats page: map and list show the same model; picking is local, going on holds all seats at once or none. */
import { $, ask, data, h, say } from "./dom.js";
import { Basket, priceOf } from "./seatmap/basket.js";
import { BestSeats } from "./seatmap/best.js";
import { describe, priceAt, priceRange } from "./seatmap/element.js";
import { SeatFeed } from "./seatmap/feed.js";
import { SeatGrid } from "./seatmap/grid.js";
import { FREE, SeatModel } from "./seatmap/model.js";
import { seatsName } from "./seatmap/names.js";
import "./timer.js";
import { lang, number, t, tn } from "./words.js";

const page = data("page-data"),
  HOLD_TRIES = 5,
  EXCHANGES = 5,
  PROPOSED_PX = 20,
  NEXT_BEST = "frontrow.next-best",
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
$("#price-box").hidden = prices.length < 2;
const maxPrice = () => prices[Number(price.value)];
/** The seats that are held already, in this tab or another: they count as free for their owner. */
const held = new Set(
  page.held ? [...Array(model.n).keys()].filter((i) => page.held.seats.includes(model.seat(i).id)) : []
);
for (const i of held) model.mine.add(i);
const best = new BestSeats(model, page.order, page.ranks);
/** The best seats as they were proposed. @type {{wish: import("./seatmap/best.js").Wish, seats: number[]} | null} */
let proposal = null;
/** Whether the choice is the proposal, unchanged. */
const isProposed = () => proposal?.seats.length === model.mine.size && proposal.seats.every((i) => model.mine.has(i));
const basket = new Basket(model, best, page, held, { pick: (i) => pick(i), stand, move, isProposed });
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
/** How many standing places are in the basket, to be changed here. @param {import("./seatmap/model.js").Section} one */
function areaForm(one) {
  const s = model.section[one.base],
    many = /** @type {HTMLInputElement} */ (
      h("input", { id: "places", type: "number", min: "0", max: String(page.most), value: String(standing(s).length) })
    ),
    set = (/** @type {number} */ n) => {
      stand(s, Math.min(page.most, Math.max(0, Math.trunc(n) || 0)));
      many.value = String(standing(s).length);
    },
    step = (/** @type {number} */ by, /** @type {string} */ sign, /** @type {string} */ label) =>
      h(
        "button",
        {
          class: "btn quiet icon",
          type: "button",
          "aria-label": label,
          onclick: () => set(standing(s).length + by)
        },
        sign
      );
  many.addEventListener("change", () => set(Number(many.value)));
  return h(
    "div",
    {},
    h("label", { for: "places" }, t("How many standing places?")),
    h("div", { class: "stepper" }, step(-1, "−", t("One place fewer")), many, step(1, "+", t("One place more")))
  );
}
/** The chosen places of a standing section. @param {number} s */
const standing = (s) => [...model.mine].filter((i) => model.section[i] === s);
/** Choose so many standing places. All are alike, so any free ones do; at random, so that two people rarely want the
 * same. @param {number} s @param {number} n */
function stand(s, n) {
  const one = model.sections[s],
    now = standing(s),
    room = page.most - (model.mine.size - now.length);
  if (n > room) note(t("That would be more tickets than one person may have."));
  else unnote();
  const more = Math.min(n, room) - now.length,
    free = [];
  for (let i = one.base; more > 0 && i < one.base + one.n; i++) if (canHave(i) && !model.mine.has(i)) free.push(i);
  for (let left = more; left > 0 && free.length; left--)
    model.mine.add(free.splice(Math.floor(Math.random() * free.length), 1)[0]);
  for (const i of now.slice(0, Math.max(0, -more))) model.mine.delete(i);
  refresh(now);
  const places = document.querySelector("#places");
  if (opened === s && places instanceof HTMLInputElement) places.value = String(standing(s).length);
  say(standing(s).length ? seatsName(standing(s).map((i) => model.seat(i))) : t("Removed."));
}
/** Give chosen seats up for others. @param {number[]} from @param {number[]} to */
function move(from, to) {
  for (const i of from) model.mine.delete(i);
  for (const i of to) model.mine.add(i);
  refresh([...from, ...to]);
  say(t("Chosen: {seats}", { seats: seatsName([...model.mine].map((i) => model.seat(i))) }));
  $("#go").focus();
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
  if (model.isKept(i) && !stepFree.checked) {
    keptFor(i);
    return;
  }
  if (model.mine.size >= page.most) {
    note(t("That would be more tickets than one person may have."));
    return;
  }
  model.mine.add(i);
  show([]);
  unnote();
  refresh([i]);
  say(describe(model.seat(i)));
}

/** A step-free place is for those who ask for one. @param {number} i */
function keptFor(i) {
  const ask = () => {
    stepFree.checked = true;
    listSections();
    unnote();
    pick(i);
  };
  note(
    t("This place is kept for people who need step-free access."),
    "warn",
    h("p", {}, h("button", { class: "btn quiet sm", type: "button", onclick: ask }, t("I need a step-free place")))
  );
}

/** Show again what changed. @param {number[]} changed */
function refresh(changed) {
  const alone = basket.alone,
    { options } = map.view;
  grid.mark(alone);
  options.alone = alone;
  map.update(changed);
  map.view.request();
  grid.refresh(changed);
  basket.show();
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

/** What is asked for. @returns {import("./seatmap/best.js").Wish} */
const wished = () => ({
  count: Number(count.value),
  maxPrice: maxPrice(),
  stepFree: stepFree.checked,
  apart: apart.checked
});
/** Propose the best seats on the map, with their price. What is chosen already stays until the fan says otherwise. */
function propose() {
  const wish = wished(),
    seats = best.find(wish, held);
  show([]);
  unnote();
  if (!seats.length) {
    refused({ code: "no_such_seats" }, []);
    return;
  }
  const infos = seats.map((i) => model.seat(i)),
    text = t("Best available: {seats}, {price}", { seats: seatsName(infos), price: priceOf(infos, page.currency) }),
    mine = [...model.mine];
  const middle = seats[seats.length >> 1];
  map.flyTo(model.section[middle], { wx: model.x[middle], wy: model.y[middle] }, PROPOSED_PX);
  const take = (/** @type {number[]} */ instead) => {
    show([]);
    unnote();
    proposal = { wish, seats };
    move(instead, seats);
  };
  if (!mine.length || (mine.length === seats.length && seats.every((i) => model.mine.has(i)))) {
    take(mine);
    say(text);
    return;
  }
  show(seats);
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
    h("button", { class: "btn quiet sm", type: "button", onclick }, label);
  const both = mine.length + seats.length <= page.most && !seats.some((i) => model.mine.has(i));
  $("#ask").hidden = false;
  $("#ask").replaceChildren(
    h("p", {}, h("strong", {}, text)),
    h(
      "p",
      {},
      t("You have chosen {seats}.", { seats: seatsName(mine.sort((a, b) => a - b).map((i) => model.seat(i))) })
    ),
    h(
      "div",
      { class: "row" },
      button(t("Take these instead"), () => take(mine)),
      ...(both ? [button(t("Add these"), () => take([]))] : []),
      button(t("Keep my choice"), () => show([]))
    )
  );
  say(text);
}
/** Mark seats as proposed; none ends the question. @param {number[]} seats */
function show(seats) {
  if (!seats.length) $("#ask").hidden = true;
  map.view.options.proposed = seats;
  map.view.request();
}

/** Hold what is chosen. Standing places that are gone are exchanged for others: all are alike. */
async function go() {
  for (let tries = 0; tries < EXCHANGES; tries++) {
    const mine = [...model.mine],
      proposed = isProposed(),
      problem = await hold({ seats: mine.map((i) => model.seat(i).id) });
    if (!problem) return;
    if (proposed && ["seats_taken", "lonely_seat"].includes(problem.code)) {
      await nextBest(problem, mine);
      return;
    }
    if (!exchange(problem, mine)) {
      refused(problem, mine);
      return;
    }
  }
  note(t("That did not work. Please try again."));
}
/** The proposed seats are gone, or may only be had as the best ones (a split party can leave a single seat alone): the
 * server holds the best in one step. The page shows them before it goes on, if they are others.
 * @param {any} problem @param {number[]} wanted */
async function nextBest(problem, wanted) {
  const { wish } = /** @type {NonNullable<typeof proposal>} */ (proposal),
    body = { count: wish.count, max_price_minor: wish.maxPrice, step_free: wish.stepFree, apart_ok: wish.apart };
  proposal = null;
  const other = await hold({ best: body }, (made) => {
    if (wanted.every((i) => made.seats.includes(model.seat(i).id))) {
      location.assign(`/checkout/${made.booking}`);
      return;
    }
    try {
      sessionStorage.setItem(NEXT_BEST, page.event);
    } catch {
      /* private mode: the seats are shown without the sentence */
    }
    location.reload();
  });
  if (other) refused(other.code === "no_such_seats" ? other : problem, wanted);
}
/** Exchange standing places that are gone. @param {any} problem @param {number[]} wanted @returns {boolean} whether nothing else was gone */
function exchange(problem, wanted) {
  const gone = lostOf(problem, wanted);
  if (problem.code !== "seats_taken" || !gone.length) return false;
  return gone.every((i) => model.sections[model.section[i]].area) && restand(gone);
}
/** Other standing places for these. @param {number[]} gone @returns {boolean} whether there were enough */
function restand(gone) {
  const before = model.mine.size;
  for (const i of gone) model.lose(i);
  for (const s of new Set(gone.map((i) => model.section[i])))
    stand(s, standing(s).length + gone.filter((i) => model.section[i] === s).length);
  return model.mine.size >= before;
}
/** @param {any} problem @param {number[]} wanted */
function lostOf(problem, wanted) {
  const lost = new Set(problem.seats ?? []);
  return wanted.filter((i) => lost.has(i) || lost.has(model.seat(i).id));
}

/** Hold seats: all or none. @param {any} body @param {(made: any) => void} [then] what follows; else the checkout
 * @returns {Promise<any>} the problem if the server said no */
async function hold(body, then) {
  if (busy) return null;
  busy = true;
  const button = /** @type {HTMLButtonElement} */ ($("#go"));
  button.setAttribute("aria-disabled", "true");
  const key = crypto.randomUUID?.() ?? String(Math.random());
  for (let tries = 0; tries < HOLD_TRIES; tries++) {
    const answer = await ask(`${page.base}/holds`, { method: "POST", body: { ...body, replace: true }, key });
    if (answer.ok) {
      if (then) then(answer.body);
      else location.assign(`/checkout/${answer.body.booking}`);
      return null;
    }
    if (answer.status === 401) {
      location.assign(`${page.base}/room/`);
      return null;
    }
    if (![0, 429, 503].includes(answer.status)) {
      busy = false;
      button.removeAttribute("aria-disabled");
      return answer.body;
    }
    note(t("The connection is slow. Retrying …"));
    await new Promise((go) => setTimeout(go, 1000 * (answer.after_s || 1 + tries)));
    if (tries === HOLD_TRIES - 1) note(t("That did not work. Please try again."));
  }
  busy = false;
  button.removeAttribute("aria-disabled");
  return null;
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
  const gone = lostOf(problem, wanted);
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
    name = seatsName(seats),
    cost = priceOf(seats, page.currency);
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
  propose();
});
$("#go").addEventListener("click", () => {
  if (basket.isHeld) location.assign(`/checkout/${page.held.booking}`);
  else if (model.mine.size) go();
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
    const gone = changed.filter((i) => model.mine.has(i) && !canHave(i)),
      isPlace = (/** @type {number} */ i) => model.sections[model.section[i]].area,
      lost = gone.filter((i) => !isPlace(i));
    for (const i of lost) model.mine.delete(i);
    const stands = busy || restand(gone.filter(isPlace));
    refresh(changed);
    if (!stands) note(t("Someone was faster: these seats are taken."));
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
try {
  if (sessionStorage.getItem(NEXT_BEST) === page.event && held.size) {
    const seats = [...held].map((i) => model.seat(i));
    note(
      t("Someone was faster. The next best seats are held for you: {seats}, {price}.", {
        seats: seatsName(seats),
        price: priceOf(seats, page.currency)
      })
    );
    map.flyTo(model.section[seats[0].i], { wx: model.x[seats[0].i], wy: model.y[seats[0].i] }, PROPOSED_PX);
  }
  sessionStorage.removeItem(NEXT_BEST);
} catch {
  /* private mode */
}
document.querySelector("#held fr-timer")?.addEventListener("over", () => location.reload());
addEventListener("pageshow", (e) => {
  if (e.persisted) location.reload(); // back from the checkout: the seats may be held now
});
// what tests and the benchmark look at
Object.assign(window, { frontrow: { model, map, feed, pick, open } });
