// @ts-check
/** The page on which a plan is arranged by hand. Changes stay in this browser until they are saved. */
import { $, ask, h, say } from "../dom.js";
import { t } from "../words.js";
import { Arranger, BEND, FAR, GRID, TURN } from "./arrange/arranger.js";
import { Board } from "./arrange/board.js";
import { draftOf, findDoubled, fromArrangement, keysOf, toArrangement } from "./arrange/draft.js";
import { Gestures } from "./arrange/gestures.js";
import "./once.js";

const page = $("#arrange"),
  box = $("#board"),
  list = $("#items"),
  label = /** @type {HTMLInputElement} */ ($("#item-label")),
  form = /** @type {HTMLFormElement} */ ($("#save")),
  shelf = `arrange:${page.dataset.venue}`,
  KEEP_MS = 300;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
/** @param {string} id */
const button = (id) => /** @type {HTMLButtonElement} */ ($(`#${id}`));

/** What was kept in this browser for this very plan. */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(shelf) || "null");
    return found?.plan === page.dataset.plan ? found.placed : null;
  } catch {
    return null;
  }
}
/** @param {unknown} placed */
function keep(placed) {
  try {
    if (placed) localStorage.setItem(shelf, JSON.stringify({ plan: page.dataset.plan, placed }));
    else localStorage.removeItem(shelf);
  } catch {
    // A browser that keeps nothing: the page warns before it is left.
  }
}

/** @param {import("../seatmap/model.js").MapDoc} doc */
function start(doc) {
  const first = draftOf(doc),
    typed = JSON.parse($("#typed").textContent || "null"),
    brought = typed ?? kept(),
    restored = brought && fromArrangement(first, brought),
    board = new Board(box, doc.decor),
    arranger = new Arranger(board, first, restored ?? first, () => show()),
    gestures = new Gestures(box, board, arranger);
  let open = "",
    later = 0,
    leaving = false;

  const store = () => {
    clearTimeout(later);
    later = 0;
    keep(arranger.changed ? toArrangement(first, arranger.draft) : null);
  };

  /** Everything beside the board as it is now. */
  const show = () => {
    const [key] = arranger.chosen,
      one = arranger.chosen.size === 1 && key.split("/").length < 3;
    button("undo").disabled = !arranger.history.canUndo;
    button("redo").disabled = !arranger.history.canRedo;
    for (const each of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("[data-act]")))
      each.disabled = !arranger.chosen.size;
    $("#unsaved").hidden = !arranger.changed;
    $("#chosen").textContent = arranger.chosen.size ? arranger.what : t("Nothing selected");
    label.disabled = !one;
    label.value = one ? arranger.labelOf(key) : "";
    if (key) open = key.split("/")[0];
    showList();
    if (page.dataset.ready) later ||= window.setTimeout(store, KEEP_MS);
  };

  const showList = () => {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.item,
      entry = (/** @type {string} */ key, /** @type {string} */ text) =>
        h("button", { type: "button", "data-item": key, "aria-pressed": String(arranger.chosen.has(key)) }, text);
    list.replaceChildren(
      ...arranger.draft.sections.map((section) => {
        const item = h(
          "li",
          {},
          entry(
            section.key,
            section.name && section.name !== section.id ? `${section.name} (${section.id})` : section.id
          )
        );
        if (section.key === open && !section.box)
          item.append(
            h(
              "ul",
              { class: "plain" },
              ...section.rows.map((row) => h("li", {}, entry(row.key, t("Row {row}", { row: row.id }))))
            )
          );
        return item;
      })
    );
    if (focused) /** @type {HTMLElement | null} */ (list.querySelector(`[data-item="${focused}"]`))?.focus();
  };

  list.addEventListener("click", (e) => {
    const key = /** @type {HTMLElement} */ (e.target).dataset.item;
    if (!key) return;
    setLevel(key.includes("/") ? "row" : "section");
    open = key.split("/")[0];
    if (e.shiftKey || arranger.several) arranger.toggle(key);
    else arranger.choose([key]);
    say(arranger.what);
  });

  const levels = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[name=level]"));
  const setLevel = (/** @type {import("./arrange/arranger.js").Level} */ level) => {
    for (const one of levels) one.checked = one.value === level;
    arranger.setLevel(level);
  };
  for (const one of levels) one.addEventListener("change", () => arranger.setLevel(/** @type {any} */ (one.value)));
  for (const [id, set] of /** @type {[string, (on: boolean) => void][]} */ ([
    ["snap", (on) => (arranger.snaps = on)],
    ["several", (on) => (arranger.several = on)]
  ]))
    $(`#${id}`).addEventListener("change", (e) => set(/** @type {HTMLInputElement} */ (e.target).checked));
  label.addEventListener("change", () => arranger.rename(label.value.trim()));

  /** @type {Record<string, () => void>} */
  const acts = {
    left: () => arranger.move(-GRID, 0),
    right: () => arranger.move(GRID, 0),
    up: () => arranger.move(0, -GRID),
    down: () => arranger.move(0, GRID),
    "turn-left": () => arranger.rotate(-TURN),
    "turn-right": () => arranger.rotate(TURN),
    "bend-more": () => arranger.bend(BEND),
    "bend-less": () => arranger.bend(-BEND),
    duplicate: () => arranger.duplicate(),
    remove: () => arranger.remove()
  };
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-act]")))
    one.addEventListener("click", () => acts[one.dataset.act ?? ""]?.());
  button("undo").addEventListener("click", () => arranger.undo());
  button("redo").addEventListener("click", () => arranger.redo());
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (page.querySelectorAll("[data-zoom]")))
    one.addEventListener("click", () => {
      if (one.dataset.zoom === "fit") board.fit();
      else board.zoom(one.dataset.zoom === "in" ? 1.6 : 1 / 1.6);
    });
  button("discard").addEventListener("click", () => {
    keep(null);
    leaving = true;
    location.assign(location.pathname);
  });

  /** @param {KeyboardEvent} e @returns {boolean} whether the key was ours */
  const control = (e) => {
    const key = e.key.toLowerCase();
    if (key === "z" && e.shiftKey) arranger.redo();
    else if (key === "z") arranger.undo();
    else if (key === "y") arranger.redo();
    else if (key === "d") arranger.duplicate();
    else if (key === "a") arranger.all();
    else return false;
    return true;
  };
  /** @param {KeyboardEvent} e @returns {boolean} */
  const press = (e) => {
    const arrow = ARROWS[e.key],
      far = e.shiftKey ? FAR : GRID;
    if (e.ctrlKey || e.metaKey) return control(e);
    if (arrow && e.altKey) {
      if (arrow[0]) arranger.rotate(arrow[0] * TURN);
      else arranger.bend(arrow[1] * BEND);
    } else if (arrow) arranger.move(arrow[0] * far, arrow[1] * far);
    else if (e.key === "+" || e.key === "=") arranger.bend(BEND);
    else if (e.key === "-") arranger.bend(-BEND);
    else if (e.key === "Delete") arranger.remove();
    else if (e.key === " " && e.target === box) gestures.held = true;
    else if (e.key === "PageDown") arranger.step(1);
    else if (e.key === "PageUp") arranger.step(-1);
    else if (e.key === "Escape" && gestures.busy) gestures.cancel();
    else if (e.key === "Escape" && arranger.chosen.size) arranger.choose([]);
    else return false;
    return true;
  };
  document.addEventListener("keydown", (e) => {
    const on = /** @type {HTMLElement} */ (e.target),
      item = on.dataset?.item;
    if (on.matches("input:not([type=checkbox]):not([type=radio]), textarea, select")) return;
    const here = on === box || Boolean(item),
      undoes = (e.ctrlKey || e.metaKey) && /^[zy]$/i.test(e.key);
    if (!here && !undoes && !(e.key === "Escape" && gestures.busy)) return;
    if (item && !arranger.chosen.has(item) && (ARROWS[e.key] || /^([+=-]|Delete)$/.test(e.key))) {
      setLevel(item.includes("/") ? "row" : "section");
      arranger.choose([item]);
    }
    if (press(e)) e.preventDefault();
  });

  document.addEventListener("keyup", (e) => {
    if (e.key === " ") gestures.held = false;
  });

  form.addEventListener("submit", (e) => {
    const doubled = findDoubled(arranger.draft);
    if (doubled.length) {
      e.preventDefault();
      setLevel(doubled[0].includes("/") ? "row" : "section");
      arranger.choose([doubled[0]]);
      const problem = $("#problem");
      problem.textContent = t("There are two of {what}. Give one another label.", { what: arranger.what });
      problem.hidden = false;
      label.focus();
      return;
    }
    store();
    leaving = true;
    /** @type {HTMLInputElement} */ ($("input[name=placed]", form)).value = JSON.stringify(
      toArrangement(first, arranger.draft)
    );
  });
  addEventListener("pagehide", () => later && store());
  addEventListener("beforeunload", (e) => {
    if (later) store();
    if (!leaving && arranger.changed && !kept()) e.preventDefault();
  });

  new ResizeObserver(() => {
    const fits = !board.w || board.showsWhole;
    board.resize();
    if (fits) board.fit();
  }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => board.readTheme());
  board.wrong = keysOf(arranger.draft, JSON.parse(page.dataset.wrong || "[]"));
  if (brought) $("#restored").hidden = !restored;
  if (brought && !restored) say(t("Unsaved changes of an older plan were dropped."));
  show();
  Object.assign(window, { frontrow: { board, arranger } });
  page.dataset.ready = "yes";
}

if (new URLSearchParams(location.search).get("done") === "saved") keep(null);
const answer = await ask(page.dataset.map ?? "");
if (answer.ok) start(answer.body.map);
else say(t("The plan could not be loaded. Try again."));
