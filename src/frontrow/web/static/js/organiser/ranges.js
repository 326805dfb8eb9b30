// @ts-check
/** Seats as text, one line each: a section (101), a row (101-A), a seat (101-A-4) or neighbours (101-A-4…9).
 * The server reads and writes the same lines (boxoffice/seats/seat_ranges.py). */

/** @typedef {import("../seatmap/model.js").SeatModel} SeatModel */

/** Every row with its id (`101-A`) and its seats. @param {SeatModel} model */
function* rowsOf(model) {
  for (const section of model.sections)
    for (let r = 0; r < section.rows.length; r++) {
      const [from, to] = model.rowEnds(section, r);
      if (to > from) yield { section, id: model.seat(from).id.replace(/-[^-]*$/, ""), from, to };
    }
}

/** The lines for these seats, as few as possible. @param {SeatModel} model @param {Set<number>} seats @returns {string[]} */
export function rangesOf(model, seats) {
  const lines = [],
    whole = new Set();
  for (const section of model.sections) {
    let all = section.n > 0;
    for (let i = section.base; all && i < section.base + section.n; i++) all = seats.has(i);
    if (all) whole.add(section.id);
  }
  const said = new Set();
  for (const { section, id, from, to } of rowsOf(model)) {
    if (whole.has(section.id)) {
      if (!said.has(section.id)) lines.push(section.id);
      said.add(section.id);
      continue;
    }
    /** @type {[number, number][]} */
    const runs = [];
    for (let i = from; i < to; i++)
      if (seats.has(i)) {
        const last = runs.at(-1);
        if (last && last[1] === i - 1) last[1] = i;
        else runs.push([i, i]);
      }
    if (runs.length === 1 && runs[0][0] === from && runs[0][1] === to - 1) lines.push(id);
    else
      for (const [first, last] of runs)
        lines.push(
          first === last ? model.seat(first).id : `${model.seat(first).id}…${model.seat(last).id.slice(id.length + 1)}`
        );
  }
  return lines;
}

/** The seats that the lines name, and the lines that name none. @param {SeatModel} model @param {string} text */
export function seatsOf(model, text) {
  /** @type {Map<string, [number, number]>} */
  const named = new Map();
  for (const { section, id, from, to } of rowsOf(model)) {
    named.set(section.id, [section.base, section.base + section.n]);
    named.set(id, [from, to]);
  }
  /** @type {number[]} */
  const seats = [];
  /** @type {string[]} */
  const odd = [];
  for (const line of text.split("\n").map((one) => one.trim()))
    if (line) {
      const ends = named.get(line) ?? within(model, named, line);
      if (ends) for (let i = ends[0]; i < ends[1]; i++) seats.push(i);
      else odd.push(line);
    }
  return { seats, odd };
}

/** The seats of a line within one row. @param {SeatModel} model @param {Map<string, [number, number]>} named @param {string} line @returns {[number, number] | null} */
function within(model, named, line) {
  const at = line.indexOf("-", line.indexOf("-") + 1),
    row = named.get(line.slice(0, at));
  if (at < 0 || !row) return null;
  const label = line.slice(at + 1),
    find = (/** @type {string} */ wanted) => {
      for (let i = row[0]; i < row[1]; i++) if (model.seat(i).number === wanted) return i;
      return -1;
    };
  const one = find(label);
  if (one >= 0) return [one, one + 1];
  const parts = /^(.+?)(?:…|\.\.\.?)(.+)$/.exec(label);
  const [first, last] = parts ? [find(parts[1].trim()), find(parts[2].trim())] : [-1, -1];
  return first >= 0 && last >= first ? [first, last + 1] : null;
}
