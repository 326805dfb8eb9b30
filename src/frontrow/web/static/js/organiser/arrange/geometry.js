// @ts-check
/** Moving, rotating and bending rows of seats. Pure: points are lists x, y, x, y … in plan units, rounded to hundredths. */

/** @typedef {readonly number[]} Points */
/** @typedef {[number, number, number, number]} Box left, top, right, bottom */

const DEGREE = Math.PI / 180;
const MAX_BEND = 180;

/** @param {number} n */
export const round = (n) => Math.round(n * 100) / 100 + 0;

/** The nearest multiple of `step`. @param {number} value @param {number} step */
export const snapTo = (value, step) => Math.round(value / step) * step;

/** A move that puts `anchor` onto the grid. @param {[number, number]} anchor @param {number} dx @param {number} dy @param {number} step @returns {[number, number]} */
export const snapMove = ([x, y], dx, dy, step) => [
  dx ? round(snapTo(x + dx, step) - x) : 0,
  dy ? round(snapTo(y + dy, step) - y) : 0
];

/** @param {Points} points @param {number} dx @param {number} dy */
export const movePoints = (points, dx, dy) => points.map((value, at) => round(value + (at % 2 ? dy : dx)));

/** @param {Points} points @param {number} cx @param {number} cy @param {number} degrees */
export function rotatePoints(points, cx, cy, degrees) {
  const cos = Math.cos(degrees * DEGREE),
    sin = Math.sin(degrees * DEGREE),
    turned = [];
  for (let at = 0; at < points.length; at += 2) {
    const x = points[at] - cx,
      y = points[at + 1] - cy;
    turned.push(round(cx + x * cos - y * sin), round(cy + x * sin + y * cos));
  }
  return turned;
}

/** The distances between neighbours. @param {Points} points */
function chordsOf(points) {
  const chords = [];
  for (let at = 2; at < points.length; at += 2)
    chords.push(Math.hypot(points[at] - points[at - 2], points[at + 1] - points[at - 1]));
  return chords;
}

/** How long a row is, seat to seat. @param {Points} points */
export const lengthOf = (points) => chordsOf(points).reduce((sum, one) => sum + one, 0);

/** The direction from the first seat to the last, as a unit vector. @param {Points} points @returns {[number, number]} */
export function directionOf(points) {
  const x = points[points.length - 2] - points[0],
    y = points[points.length - 1] - points[1],
    far = Math.hypot(x, y);
  return far > 0.01 ? [x / far, y / far] : [1, 0];
}

/** By how many degrees a row turns from its beginning to its end; 0 is straight. @param {Points} points */
export function bendOf(points) {
  const seats = points.length / 2;
  if (seats < 3) return 0;
  let sum = 0,
    last = NaN;
  for (let at = 2; at < points.length; at += 2) {
    const way = Math.atan2(points[at + 1] - points[at - 1], points[at] - points[at - 2]);
    if (!Number.isNaN(last)) {
      const turn = way - last;
      sum += turn > Math.PI ? turn - 2 * Math.PI : turn < -Math.PI ? turn + 2 * Math.PI : turn;
    }
    last = way;
  }
  return -(sum / DEGREE) * ((seats - 1) / (seats - 2));
}

/** The row on an arc that turns by `degrees`. Seats stay as far apart as they are; the middle between its two ends and the
 * direction from one to the other stay too. A positive bend moves the middle to the right of that direction (downwards).
 * @param {Points} points @param {number} degrees */
export function bendPoints(points, degrees) {
  if (points.length < 6) return [...points];
  const bend = Math.max(-MAX_BEND, Math.min(MAX_BEND, degrees)) * DEGREE,
    chords = chordsOf(points),
    length = chords.reduce((sum, one) => sum + one, 0),
    mean = length / chords.length,
    [ux, uy] = directionOf(points),
    mx = (points[0] + points[points.length - 2]) / 2,
    my = (points[1] + points[points.length - 1]) / 2,
    straight = Math.abs(bend) < 1e-6,
    radius = straight ? 0 : mean / (2 * Math.sin((bend * mean) / (2 * length))),
    drop = straight ? 0 : radius * Math.cos(bend / 2),
    bent = [];
  for (let seat = 0, along = 0; seat <= chords.length; along += chords[seat++]) {
    const angle = (along / length - 0.5) * bend,
      across = straight ? along - length / 2 : radius * Math.sin(angle),
      down = straight ? 0 : radius * Math.cos(angle) - drop;
    bent.push(round(mx + ux * across - uy * down), round(my + uy * across + ux * down));
  }
  return bent;
}

/** The box around these points. @param {Iterable<Points>} lists @returns {Box} */
export function boundsOf(lists) {
  /** @type {Box} */
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const points of lists)
    for (let at = 0; at < points.length; at += 2) {
      box[0] = Math.min(box[0], points[at]);
      box[1] = Math.min(box[1], points[at + 1]);
      box[2] = Math.max(box[2], points[at]);
      box[3] = Math.max(box[3], points[at + 1]);
    }
  return box;
}
