// @ts-check
/** A plan as it is being arranged: a value that every change makes anew, sharing what did not change. So undo is the value
 * before, and what has to be saved is what is not the same any more. No DOM in here. */
import { rowLabel, SeatModel } from "../../seatmap/model.js";
import { bendOf, bendPoints, boundsOf, movePoints, rotatePoints, round } from "./geometry.js";

/** @typedef {import("./geometry.js").Points} Points */
/** @typedef {{key: string, of: string, id: string, points: Points, tiers: readonly number[], numbers: readonly string[]}} RowDraft */
/** @typedef {{key: string, of: string, id: string, name: string, tier: number, box: readonly number[] | null, rows: readonly RowDraft[]}} SectionDraft `box` of an area: x, y, width, height */
/** @typedef {{readonly sections: readonly SectionDraft[]}} Draft */
/** What is chosen: keys of sections ("s1"), rows ("s1/r2") and seats ("s1/r2/5"). @typedef {ReadonlySet<string>} Chosen */
/** @typedef {{of: string, id?: string, points?: number[]}} RowPlacement */
/** @typedef {{of: string, id?: string, rows?: RowPlacement[], box?: number[]}} SectionPlacement */

export const MAX_STEPS = 200;
const COPY_DOWN = 12,
  MAX_LABEL = 32;

/** The draft of a plan document. @param {import("../../seatmap/model.js").MapDoc} doc @returns {Draft} */
export function draftOf(doc) {
  const model = new SeatModel(doc);
  const sections = model.sections.map((one, s) => {
    const ids = doc.detail[s]?.rows;
    const rows = Array.from(one.rows, (_, r) => {
      const [from, to] = model.rowEnds(one, r),
        id = ids?.[r] ?? (one.area ? "GA" : rowLabel(r)),
        points = [],
        numbers = [];
      for (let i = from; i < to && !one.area; i++) {
        points.push(round(model.x[i]), round(model.y[i]));
        numbers.push(model.numberOf(i));
      }
      return { key: `s${s}/r${r}`, of: id, id, points, numbers, tiers: Array.from(model.tier.subarray(from, to)) };
    });
    const [x0, y0, x1, y1] = one.box;
    const box = one.area ? [x0, y0, x1 - x0, y1 - y0] : null;
    return { key: `s${s}`, of: one.id, id: one.id, name: doc.detail[s]?.name ?? "", tier: one.tier, box, rows };
  });
  return { sections };
}

/** What is chosen, looked up by section and row: whole ones, seats of a row, and sections of which anything is chosen.
 * @param {Chosen} chosen */
function lookUp(chosen) {
  const touched = new Set();
  /** @type {Map<string, number[]>} */
  const seats = new Map();
  for (const key of chosen) {
    const [section, row, seat] = key.split("/");
    touched.add(section);
    if (seat === undefined) continue;
    const of = `${section}/${row}`,
      list = seats.get(of) ?? [];
    list.push(Number(seat));
    seats.set(of, list);
  }
  return {
    touched,
    /** All seats of a row, some by position, or none. @param {SectionDraft} section @param {RowDraft} row @returns {"all" | number[] | null} */
    of: (section, row) =>
      chosen.has(section.key) || chosen.has(row.key) ? /** @type {const} */ ("all") : (seats.get(row.key) ?? null)
  };
}

/** Every list of points that is chosen, row by row. @param {Draft} draft @param {Chosen} chosen @returns {Points[]} */
export function chosenPoints(draft, chosen) {
  const look = lookUp(chosen);
  /** @type {Points[]} */
  const found = [];
  for (const section of draft.sections) {
    if (!look.touched.has(section.key)) continue;
    if (section.box) {
      const [x, y, w, h] = section.box;
      found.push([x, y, x + w, y + h]);
      continue;
    }
    for (const row of section.rows) {
      const which = look.of(section, row);
      if (which === "all") found.push(row.points);
      else if (which) found.push(which.flatMap((i) => [row.points[2 * i], row.points[2 * i + 1]]));
    }
  }
  return found;
}

/** The draft with the chosen points changed. @param {Draft} draft @param {Chosen} chosen @param {(points: Points, whole: boolean) => Points} change @param {(box: readonly number[]) => readonly number[]} changeBox @returns {Draft} */
function changed(draft, chosen, change, changeBox) {
  const look = lookUp(chosen);
  return {
    sections: draft.sections.map((section) => {
      if (!look.touched.has(section.key)) return section;
      if (section.box) return { ...section, box: changeBox(section.box).map(round) };
      const rows = section.rows.map((row) => {
        const which = look.of(section, row);
        if (!which) return row;
        if (which === "all") return { ...row, points: change(row.points, true) };
        const points = [...row.points],
          some = change(
            which.flatMap((i) => [points[2 * i], points[2 * i + 1]]),
            false
          );
        which.forEach((i, at) => {
          points[2 * i] = some[2 * at];
          points[2 * i + 1] = some[2 * at + 1];
        });
        return { ...row, points };
      });
      return { ...section, rows };
    })
  };
}

/** A move that does not leave the plan at the left or the top. @param {Draft} draft @param {Chosen} chosen @param {number} dx @param {number} dy @returns {[number, number]} */
export function withinPlan(draft, chosen, dx, dy) {
  const [left, top] = boundsOf(chosenPoints(draft, chosen));
  return [round(Math.max(dx, Math.min(0, -left))), round(Math.max(dy, Math.min(0, -top)))];
}

/** @param {Draft} draft @param {Chosen} chosen @param {number} dx @param {number} dy @returns {Draft} */
export const moveChosen = (draft, chosen, dx, dy) =>
  changed(
    draft,
    chosen,
    (points) => movePoints(points, dx, dy),
    ([x, y, w, h]) => [x + dx, y + dy, w, h]
  );

/** Turn what is chosen around its middle. A standing area keeps its sides upright. @param {Draft} draft @param {Chosen} chosen @param {number} degrees @returns {Draft} */
export function rotateChosen(draft, chosen, degrees) {
  const [x0, y0, x1, y1] = boundsOf(chosenPoints(draft, chosen)),
    [cx, cy] = [(x0 + x1) / 2, (y0 + y1) / 2];
  const turned = changed(
    draft,
    chosen,
    (points) => rotatePoints(points, cx, cy, degrees),
    ([x, y, w, h]) => {
      const [mx, my] = rotatePoints([x + w / 2, y + h / 2], cx, cy, degrees);
      return [mx - w / 2, my - h / 2, w, h];
    }
  );
  return kept(turned, chosen);
}

/** Bend every chosen row by so many degrees more. @param {Draft} draft @param {Chosen} chosen @param {number} degrees @returns {Draft} */
export const bendChosen = (draft, chosen, degrees) =>
  kept(
    changed(
      draft,
      chosen,
      (points, whole) => (whole ? bendPoints(points, bendOf(points) + degrees) : points),
      (box) => box
    ),
    chosen
  );

/** What was turned or bent beyond the left or the top comes back into the plan. @param {Draft} draft @param {Chosen} chosen */
function kept(draft, chosen) {
  const [dx, dy] = withinPlan(draft, chosen, 0, 0);
  return dx || dy ? moveChosen(draft, chosen, dx, dy) : draft;
}

/** The next label that is free: 7 after 6, C after B, and A.2 after A where that is no row. @param {string} label @param {Set<string>} taken @param {boolean} counts */
function freeLabel(label, taken, counts) {
  const stem = label.replace(/\.\d+$/, "").slice(0, MAX_LABEL - 5);
  for (let n = 1; n < 10_000; n++) {
    const next =
      counts && /^\d+$/.test(label)
        ? String(Number(label) + n)
        : counts && /^[A-Z]{1,2}$/.test(label)
          ? rowLabel(positionOf(label) + n)
          : `${stem}.${n + 1}`;
    if (!taken.has(next)) return next;
  }
  return label;
}

/** @param {string} label */
const positionOf = (label) => [...label].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;

/** Copy the chosen sections and rows; the copies are chosen then. @param {Draft} draft @param {Chosen} chosen @returns {{draft: Draft, chosen: Chosen}} */
export function duplicateChosen(draft, chosen) {
  const labels = new Set(draft.sections.map((one) => one.id)),
    made = new Set();
  /** @type {SectionDraft[]} */
  const copies = [];
  let number = draft.sections.reduce((most, one) => Math.max(most, Number(one.key.slice(1))), 0);
  const sections = draft.sections.map((section) => {
    if (chosen.has(section.key)) {
      const key = `s${++number}`,
        id = freeLabel(section.id, labels, false),
        all = new Set([key]),
        rows = section.rows.map((row, r) => ({ ...row, key: `${key}/r${r}` }));
      labels.add(id);
      made.add(key);
      copies.push({ ...section, key, id, name: "", rows });
      const [, top, , bottom] = boundsOf(chosenPoints({ sections: copies }, all));
      const moved = moveChosen({ sections: copies }, all, 0, bottom - top + 2 * COPY_DOWN);
      copies[copies.length - 1] = moved.sections[copies.length - 1];
      return section;
    }
    const picked = section.rows.filter((row) => chosen.has(row.key));
    if (!picked.length || section.box) return section;
    const taken = new Set(section.rows.map((row) => row.id)),
      [, top, , bottom] = boundsOf(picked.map((row) => row.points));
    let next = section.rows.reduce((most, row) => Math.max(most, Number(row.key.split("/r")[1])), 0);
    const rows = picked.map((row) => {
      const id = freeLabel(section.rows[section.rows.length - 1].id, taken, true),
        key = `${section.key}/r${++next}`;
      taken.add(id);
      made.add(key);
      return { ...row, key, id, points: movePoints(row.points, 0, bottom - top + COPY_DOWN) };
    });
    return { ...section, rows: [...section.rows, ...rows] };
  });
  return made.size ? { draft: { sections: [...sections, ...copies] }, chosen: made } : { draft, chosen };
}

/** Without the chosen sections and rows; null if nothing would be left. @param {Draft} draft @param {Chosen} chosen @returns {Draft | null} */
export function removeChosen(draft, chosen) {
  const sections = draft.sections
    .filter((section) => !chosen.has(section.key))
    .map((section) => {
      const rows = section.rows.filter((row) => !chosen.has(row.key));
      return rows.length === section.rows.length ? section : { ...section, rows };
    })
    .filter((section) => section.rows.length);
  return sections.length ? { sections } : null;
}

/** Give one section or row another label. @param {Draft} draft @param {string} key @param {string} id @returns {Draft} */
export const renamed = (draft, key, id) => ({
  sections: draft.sections.map((section) => {
    if (section.key === key) return { ...section, id, name: "" };
    if (!key.startsWith(`${section.key}/`)) return section;
    return { ...section, rows: section.rows.map((row) => (row.key === key ? { ...row, id } : row)) };
  })
});

/** Sections and rows whose label another one has too: the keys of the later ones. @param {Draft} draft @returns {string[]} */
export function findDoubled(draft) {
  const found = [],
    sections = new Set();
  for (const section of draft.sections) {
    if (sections.has(section.id)) found.push(section.key);
    sections.add(section.id);
    const rows = new Set();
    for (const row of section.rows) {
      if (rows.has(row.id)) found.push(row.key);
      rows.add(row.id);
    }
  }
  return found;
}

/** The keys of seats by their ids, such as A-B-3. @param {Draft} draft @param {Iterable<string>} ids */
export function keysOf(draft, ids) {
  const wanted = new Set(ids),
    found = new Set();
  for (const section of draft.sections)
    for (const row of section.rows)
      row.numbers.forEach((number, i) => {
        if (wanted.has(`${section.id}-${row.id}-${number}`)) found.add(`${row.key}/${i}`);
      });
  return found;
}

/** What the server needs to know: only what is not as it was. @param {Draft} first @param {Draft} draft @returns {{sections: SectionPlacement[]}} */
export function toArrangement(first, draft) {
  const were = new Map(first.sections.map((one) => [one.key, one]));
  const hundredths = (/** @type {Points} */ values) => values.map((value) => Math.round(value * 100));
  return {
    sections: draft.sections.map((section) => {
      const was = were.get(section.key),
        same = new Set(was?.rows);
      /** @type {SectionPlacement} */
      const placed = { of: section.of };
      if (section.id !== section.of) placed.id = section.id;
      if (section.box) {
        if (section.box.join() !== was?.box?.join()) placed.box = hundredths(section.box);
      } else if (section.rows.length !== was?.rows.length || section.rows.some((row) => !same.has(row)))
        placed.rows = section.rows.map((row) => ({
          of: row.of,
          ...(row.id !== row.of && { id: row.id }),
          ...(!was?.rows.some((one) => one.key === row.key && one.points === row.points) && {
            points: hundredths(row.points)
          })
        }));
      return placed;
    })
  };
}

/** The draft that an arrangement describes; null if it does not fit this plan. @param {Draft} first @param {any} placed @returns {Draft | null} */
export function fromArrangement(first, placed) {
  const seen = new Set();
  let number = first.sections.length;
  try {
    const sections = placed.sections.map((/** @type {SectionPlacement} */ one) => {
      const source = first.sections.find((section) => section.of === one.of);
      if (!source) throw new Error("another plan");
      const key = seen.has(one.of) ? `s${number++}` : source.key;
      seen.add(one.of);
      const rows = one.rows && !source.box ? rowsOf(source, one.rows, key) : rekeyed(source.rows, source.key, key),
        box = source.box && one.box ? one.box.map((value) => value / 100) : source.box,
        id = one.id ?? source.id;
      if (key === source.key && id === source.id && !one.rows && !one.box) return source;
      return { ...source, key, id, name: id === source.id ? source.name : "", box, rows };
    });
    return sections.length ? { sections } : null;
  } catch {
    return null;
  }
}

/** @param {readonly RowDraft[]} rows @param {string} from @param {string} to */
const rekeyed = (rows, from, to) => (from === to ? rows : rows.map((row, r) => ({ ...row, key: `${to}/r${r}` })));

/** @param {SectionDraft} source @param {RowPlacement[]} placed @param {string} key @returns {RowDraft[]} */
function rowsOf(source, placed, key) {
  const seen = new Set();
  let number = source.rows.length;
  return placed.map((one) => {
    const row = source.rows.find((each) => each.of === one.of);
    if (!row || (one.points && one.points.length !== row.points.length)) throw new Error("another plan");
    const first = key === source.key && !seen.has(one.of);
    seen.add(one.of);
    if (first && !one.points && !one.id) return row;
    const points = one.points ? one.points.map((value) => value / 100) : row.points;
    return { ...row, key: first ? row.key : `${key}/r${number++}`, id: one.id ?? row.id, points };
  });
}

/** The steps that were taken, so that they can be undone and done again. */
export class History {
  #at = 0;
  /** @type {Draft[]} */ #steps;

  /** @param {Draft} first */
  constructor(first) {
    this.#steps = [first];
  }
  get now() {
    return this.#steps[this.#at];
  }
  get canUndo() {
    return this.#at > 0;
  }
  get canRedo() {
    return this.#at < this.#steps.length - 1;
  }
  /** @param {Draft} draft */
  add(draft) {
    if (draft === this.now) return;
    this.#steps = [...this.#steps.slice(0, this.#at + 1), draft].slice(-MAX_STEPS);
    this.#at = this.#steps.length - 1;
  }
  undo() {
    if (this.canUndo) this.#at--;
  }
  redo() {
    if (this.canRedo) this.#at++;
  }
}
