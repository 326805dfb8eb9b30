// @ts-check
/** A venue: its plan on the map, and files put into the form. */
import { $, ask, say } from "../dom.js";
import { t } from "../words.js";
import "./once.js";
import { showPlan } from "./plan.js";
import "./zone.js";

const map = /** @type {import("../seatmap/element.js").FrSeatmap | null} */ (document.querySelector("fr-seatmap"));
const MOST_BYTES = 16 * 1024 * 1024;

async function draw() {
  if (!map) return;
  const brought = document.querySelector("#plan");
  const doc = brought ? JSON.parse(brought.textContent || "null") : (await ask(map.dataset.map ?? "")).body.map;
  if (!doc) return;
  const model = showPlan(map, doc, []),
    chosen = new URLSearchParams(location.search).get("section");
  const at = model.sections.findIndex((one) => one.id === chosen);
  if (at >= 0) {
    map.view.options.focusSection = at;
    map.view.request();
  }
  if (map.dataset.map)
    map.addEventListener("section-pick", (e) => {
      const one = model.sections[/** @type {CustomEvent} */ (e).detail];
      if (one.id !== chosen) location.assign(`?section=${encodeURIComponent(one.id)}#edit`);
    });
}

const sources = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("#sources input[name=source]"));
if (sources.length) {
  $("#file").addEventListener("change", async (e) => {
    const file = /** @type {HTMLInputElement} */ (e.target).files?.[0];
    if (!file) return;
    if (file.size > MOST_BYTES) {
      say(t("This file is too large."));
      return;
    }
    /** @type {HTMLTextAreaElement} */ ($("#text")).value = await file.text();
    const json = file.name.endsWith(".json");
    for (const one of sources) one.checked = one.value === (json ? "json" : "csv");
    say(t("The file has been read."));
  });
}
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();
await draw();
