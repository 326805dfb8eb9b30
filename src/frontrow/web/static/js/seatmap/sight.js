// @ts-check
/** Keeps sections in sight: a round venue does not fill its box, so beside it, between its rings and in the corners the
 * map would be empty. All in the map's units. */

/** @typedef {import("./model.js").Section} Section @typedef {[number, number]} Point */

/** The middle of the view nearest to `at` that still shows a part of a section. What counts as shown is an ellipse
 * around the middle with the half axes `half`. @param {readonly Section[]} sections @param {Point} at @param {Point} half
 * @returns {Point} */
export function nearSections(sections, [x, y], [w, h]) {
  let least = Infinity,
    nearX = x,
    nearY = y;
  for (const { outline: p } of sections) {
    let inside = false;
    for (let i = 0, j = p.length - 2; i < p.length; j = i, i += 2) {
      if (p[i + 1] > y !== p[j + 1] > y && x < ((p[j] - p[i]) * (y - p[i + 1])) / (p[j + 1] - p[i + 1]) + p[i])
        inside = !inside;
      const dx = (p[i] - p[j]) / w,
        dy = (p[i + 1] - p[j + 1]) / h,
        along = (((x - p[j]) / w) * dx + ((y - p[j + 1]) / h) * dy) / (dx * dx + dy * dy || 1),
        on = Math.min(1, Math.max(0, along)),
        px = p[j] + on * dx * w,
        py = p[j + 1] + on * dy * h,
        far = Math.hypot((px - x) / w, (py - y) / h);
      if (far < least) [least, nearX, nearY] = [far, px, py];
    }
    if (inside || least <= 1) return [x, y];
  }
  return least === Infinity ? [x, y] : [nearX + (x - nearX) / least, nearY + (y - nearY) / least];
}
