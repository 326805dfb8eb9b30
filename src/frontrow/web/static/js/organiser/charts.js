// @ts-check
/** The four charts of the live page over one shared list of points: the hour the page brought along, then live frames. */
import { lang } from "../words.js";
/** @type {typeof import('../../vendor/uplot/uPlot.iife.min.js')} */
const uPlot = /** @type {any} */ (globalThis).uPlot;
const MAX_POINTS = 2_000,
  HEIGHT = 190,
  SMALL = 1_000,
  GAP_S = 30,
  HOUR_S = 3_600,
  FINE_S = 300,
  COARSE_S = 5;

/** @typedef {{at_s: number, waiting: number | null, active: number | null, admitted: number | null, held: number | null, sold: number | null, selling: number | null, p50: number | null, p99: number | null}} Point */
/** @typedef {Exclude<keyof Point, "at_s">} Name */

/** Minutes and hours only: labels have no seconds, so a tick never repeats the one before. */
const TIME_STEPS_S = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400];

/** Times as the clock at the venue shows them. @param {string} zone @param {boolean} [seconds] */
export const clockAt = (zone, seconds = false) =>
  new Intl.DateTimeFormat(lang, {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds ? { second: "2-digit" } : {}),
    hourCycle: "h23",
    numberingSystem: "latn",
    timeZone: zone
  });

/** Steps of an axis that counts people or seats: there is no fifth of a person. */
const WHOLE_STEPS = [1, 2, 5]
  .flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7].map((zeros) => n * 10 ** zeros))
  .sort((a, b) => a - b);

/** Every point of the last minutes, one per five seconds of the hour before them. @param {Point[]} points @returns {Point[]} */
function thinned(points) {
  const now_s = points[points.length - 1]?.at_s ?? 0;
  let kept_s = -Infinity;
  return points.filter((one) => {
    if (one.at_s < now_s - HOUR_S) return false;
    if (one.at_s < now_s - FINE_S && one.at_s < kept_s + COARSE_S) return false;
    kept_s = one.at_s;
    return true;
  });
}

const short = new Intl.NumberFormat(lang, { notation: "compact", maximumFractionDigits: 3, numberingSystem: "latn" });
/** The numbers of an axis: with the digits that tell them apart. @param {number[]} values */
export const tickLabels = (values) => values.map((value) => short.format(value));

/** Points of the server's history. @param {any[][]} rows at, held, sold, waiting, active, admitted, p50, p99 @returns {Point[]} */
export function fromHistory(rows) {
  return rows.map(([at_s, held, sold, waiting, active, admitted, p50, p99], i) => {
    const before = rows[i - 1],
      passed_s = before ? at_s - before[0] : 0;
    const selling = passed_s > 0 && passed_s < GAP_S ? Math.max(0, sold - before[2]) / passed_s : null;
    return { at_s, held, sold, waiting, active, admitted, selling, p50, p99 };
  });
}

export class Charts {
  /** @param {Point[]} points @param {string} zone of the venue @param {number} span_s what is shown of the hour */
  constructor(points, zone, span_s = HOUR_S) {
    this.points = points;
    this.zone = zone;
    this.span_s = span_s;
    this.clock = clockAt(zone);
    this.exact = clockAt(zone, true);
    /** @type {{plot: any, names: Name[]}[]} */
    this.plots = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint());
  }

  /** Show another part of the hour. @param {number} span_s */
  show(span_s) {
    this.span_s = span_s;
    for (const { plot, names } of this.plots) plot.setData(this.#columns(names));
  }

  /** @param {string} id @param {{name: Name, colour: string, label: string}[]} lines @param {boolean} [whole] they count people or seats */
  add(id, lines, whole = false) {
    const box = document.getElementById(id);
    if (!box || !uPlot) return;
    const colour = (/** @type {string} */ name) => () =>
      getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = {
      stroke: inked("--ink-2"),
      grid: { stroke: inked("--line"), width: 1 },
      ticks: { show: false },
      font: "12px system-ui, sans-serif"
    };
    /** @type {any} */
    const options = {
      width: box.clientWidth,
      height: HEIGHT,
      padding: [8, 12, 0, 0],
      legend: { show: false },
      tzDate: (/** @type {number} */ s) => uPlot.tzDate(new Date(s * SMALL), this.zone),
      cursor: { y: false, points: { size: 7 } },
      scales: {
        x: {
          range: () => {
            const last_s = this.points[this.points.length - 1]?.at_s ?? 0;
            return [last_s - this.span_s, last_s];
          }
        },
        y: {
          range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [
            0,
            Math.max(1, (high ?? 0) * 1.1)
          ]
        }
      },
      axes: [
        {
          ...axis,
          space: 70,
          size: 30,
          incrs: TIME_STEPS_S,
          values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((s) => this.clock.format(s * SMALL))
        },
        {
          ...axis,
          size: 52,
          ...(whole && { incrs: WHOLE_STEPS }),
          values: (/** @type {any} */ _, /** @type {number[]} */ at) => tickLabels(at)
        }
      ],
      series: [
        {},
        ...lines.map((line) => ({
          label: line.label,
          stroke: colour(line.colour),
          width: 2,
          spanGaps: false,
          points: { show: false }
        }))
      ]
    };
    const plot = new uPlot(options, this.#columns(lines.map((line) => line.name)), box);
    this.plots.push({ plot, names: lines.map((line) => line.name) });
    new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: HEIGHT })).observe(box);
    this.#titles(box, plot, lines);
  }

  /** What the pointer stands on, as the box's title. @param {HTMLElement} box @param {any} plot @param {{name: Name, label: string}[]} lines */
  #titles(box, plot, lines) {
    box.addEventListener("pointermove", () => {
      const point = this.points[plot.cursor.idx ?? -1];
      box.title = point
        ? [
            this.exact.format(point.at_s * SMALL),
            ...lines.map((line) => `${line.label}: ${point[line.name] ?? "–"}`)
          ].join(" · ")
        : "";
    });
  }

  /** @param {Name[]} names @returns {any} */
  #columns(names) {
    return [this.points.map((one) => one.at_s), ...names.map((name) => this.points.map((one) => one[name]))];
  }

  /** @param {Point} point */
  push(point) {
    const last = this.points[this.points.length - 1];
    if (last && point.at_s <= last.at_s) return;
    if (last && point.at_s - last.at_s > GAP_S)
      this.points.push({
        at_s: last.at_s + 1,
        waiting: null,
        active: null,
        admitted: null,
        held: null,
        sold: null,
        selling: null,
        p50: null,
        p99: null
      });
    this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points = thinned(this.points);
    for (const { plot, names } of this.plots) plot.setData(this.#columns(names));
  }

  #paint() {
    for (const { plot } of this.plots) plot.redraw(false, true);
  }
}

/** @param {string} name */
const inked = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
