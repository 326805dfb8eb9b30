// @ts-check
/** Whether a ticket is inside, from all of its scans that this gate knows, in whatever order they became known.
 *
 * The twin of `boxoffice/gate/gate_check.py` and `boxoffice/gate/model/scans.py`, held equal by a test. Nothing here
 * stores: `store.js` reads, asks and writes in one transaction. */

/** @typedef {"in" | "out"} Way */
/** @typedef {{scan: string, gate: string, at: string, way: Way, mine: boolean}} Seen one scan; `mine`: of this device */
/** @typedef {{event: string, ticket: string, seat?: number, fence?: number, scans: Seen[]}} Known a ticket and its scans, earliest first */
/** @typedef {"ok" | "again" | "duplicate" | "replaced" | "left" | "not_inside"} Passage `again`: ok, it came back */

const MAX_SCANS = 100; // of one ticket; the newest are kept

/** @param {Seen} one @param {Seen} other */
const earlier = (one, other) =>
  Date.parse(one.at) - Date.parse(other.at) || (one.scan < other.scan ? -1 : Number(one.scan > other.scan));

/** All of these scans, each once, earliest first. A scan of this device stays one. @param {Seen[]} scans @param {Seen[]} more */
export function merge(scans, more) {
  const all = new Map(scans.map((one) => [one.scan, one]));
  for (const one of more) if (!all.get(one.scan)?.mine) all.set(one.scan, one);
  return [...all.values()].sort(earlier).slice(-MAX_SCANS);
}

/** A new scan, later than all that this gate knows of the ticket: clocks differ, and are corrected. @param {Seen[]} scans @param {Seen} scan */
export function after(scans, scan) {
  const last = scans.at(-1),
    at_ms = last ? Math.max(Date.parse(scan.at), Date.parse(last.at) + 1) : Date.parse(scan.at);
  return { ...scan, at: new Date(at_ms).toISOString() };
}

/** @param {Seen[]} scans */
const hasLeft = (scans) => scans.at(-1)?.way === "out";

/** Whether somebody was let in while the ticket was inside. @param {Seen[]} scans */
export const cameTwice = (scans) => scans.some((one, n) => n > 0 && one.way === "in" && scans[n - 1].way === "in");

/** The admissions. @param {Seen[]} scans */
export const entries = (scans) => scans.filter((one) => one.way === "in");

/** The admission that a duplicate is told of: the newest where people may come back, else the first.
 * @param {Seen[]} scans @param {boolean} reentry */
export const admittedBy = (scans, reentry) => entries(scans).at(reentry ? -1 : 0) ?? null;

/** Whether a valid ticket may pass. An exit believes who it has not seen: they came in at another gate.
 * @param {Known | undefined} known @param {Known[]} same the tickets of its seat @param {{seat?: number, fence?: number}} ticket
 * @param {Way} way @param {boolean} reentry @returns {Passage} */
export function decide(known, same, ticket, way, reentry) {
  const scans = known?.scans ?? [];
  if (way === "out") return reentry && !hasLeft(scans) ? "left" : "not_inside";
  const back = reentry && hasLeft(scans);
  if (entries(scans).length > 0 && !back) return "duplicate";
  const newer = same.some((one) => (one.fence ?? 0) > (ticket.fence ?? 0) && entries(one.scans).length > 0);
  if (newer) return "replaced";
  return back ? "again" : "ok";
}
