// @ts-check
/** Sections by how full they are: the map's outlines as one picture, a click chooses; the list beside it is the same. */
import { ask, h } from "../dom.js";
import { t } from "../words.js";
import { SeatModel } from "../seatmap/model.js";
const SVG = "http://www.w3.org/2000/svg",
  STEPS = 4,
  NAME_SHARE = 42;

/** @typedef {{name: string, seats: number, free: number, held: number, sold: number, withheld: number}} Group */

/** How full, from 0 (nothing sold) to 4. @param {Group} group */
function fullness(group) {
  const offered = group.seats - group.withheld;
  return offered > 0 ? (group.sold ? Math.max(1, Math.round((group.sold / offered) * STEPS)) : 0) : 0;
}

export class Heat {
  /** @type {Map<string, SVGPathElement>} */ #paths = new Map();
  /** @param {HTMLElement} box @param {(name: string) => void} chosen */
  constructor(box, chosen) {
    this.box = box;
    this.chosen = chosen;
  }

  /** Draw the outlines; without a map (an event that is not sold here) only the list is left. @param {string} url */
  async draw(url) {
    const { ok, body } = url ? await ask(url) : { ok: false, body: null };
    if (!ok) {
      this.box.replaceChildren(
        h("p", { class: "muted small" }, t("There is no map on this server. The list below has every section."))
      );
      return;
    }
    const model = new SeatModel(body),
      [left, top, right, bottom] = model.box,
      edge = 12;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute(
      "viewBox",
      [left - edge, top - edge, right - left + 2 * edge, bottom - top + 2 * edge].map(Math.round).join(" ")
    );
    svg.setAttribute("role", "img");
    svg.setAttribute(
      "aria-label",
      t("Sections coloured by how much of them is sold. The list below has the same figures.")
    );
    const size = (/** @type {import("../seatmap/model.js").Section} */ one) =>
      (one.box[2] - one.box[0]) * (one.box[3] - one.box[1]);
    /** @type {SVGElement[]} */
    const names = [];
    for (const section of model.sections.toSorted((a, b) => size(b) - size(a))) {
      const path = document.createElementNS(SVG, "path"),
        points = [];
      for (let i = 0; i < section.outline.length; i += 2)
        points.push(`${section.outline[i].toFixed(1)} ${section.outline[i + 1].toFixed(1)}`);
      path.setAttribute("d", `M${points.join("L")}Z`);
      path.addEventListener("click", () => this.chosen(section.id));
      const title = document.createElementNS(SVG, "title");
      title.textContent = t("Section {section}", { section: section.name });
      path.append(title);
      this.#paths.set(section.id, path);
      svg.append(path);
      names.push(label(section.name, section.cx, section.cy, (right - left) / NAME_SHARE));
    }
    svg.append(...names);
    this.box.replaceChildren(svg);
  }

  /** @param {Group[]} groups @param {string} on */
  show(groups, on) {
    for (const group of groups) {
      const path = this.#paths.get(group.name);
      if (!path) continue;
      path.dataset.full = String(fullness(group));
      path.toggleAttribute("data-on", group.name === on);
    }
  }
}

/** @param {string} text @param {number} x @param {number} y @param {number} size */
function label(text, x, y, size) {
  const made = document.createElementNS(SVG, "text");
  made.setAttribute("x", x.toFixed(1));
  made.setAttribute("y", y.toFixed(1));
  made.style.fontSize = `${size.toFixed(1)}px`;
  made.textContent = text;
  return made;
}
