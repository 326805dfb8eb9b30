// @ts-check
/** How people call a seat, in the page's language: "Stalls, Row J, Seat 20", "Pit, standing". The server says the same
 * (`boxoffice/seats/model/seat_names.py`). */
import { number, t } from "../words.js";

/** @typedef {import("./model.js").SeatInfo} SeatInfo */

/** @param {string} section @param {string} row empty for a place to stand @param {string} seat */
export const placeName = (section, row, seat) =>
  row ? t("{section}, Row {row}, Seat {seat}", { section, row, seat }) : t("{section}, standing", { section });

/** @param {SeatInfo} seat */
export const seatName = (seat) => placeName(seat.section.name, seat.section.area ? "" : seat.row, seat.number);

/** Several seats: neighbours of a row as one, standing places as one with their number. @param {SeatInfo[]} seats sorted */
export function seatsName(seats) {
  /** @type {SeatInfo[][]} */
  const groups = [];
  for (const seat of seats) {
    const last = groups.at(-1)?.at(-1);
    if (last && isBeside(last, seat)) groups.at(-1)?.push(seat);
    else groups.push([seat]);
  }
  return groups.map(groupName).join("; ");
}
/** @param {SeatInfo} one @param {SeatInfo} next */
const isBeside = (one, next) =>
  one.section === next.section && (one.section.area || (one.row === next.row && next.i === one.i + 1));
/** @param {SeatInfo[]} group */
function groupName(group) {
  const [first, last] = [group[0], group[group.length - 1]];
  if (first === last) return seatName(first);
  if (first.section.area) return `${seatName(first)} × ${number(group.length)}`;
  return t("{section}, Row {row}, Seats {first}–{last}", {
    section: first.section.name,
    row: first.row,
    first: first.number,
    last: last.number
  });
}
