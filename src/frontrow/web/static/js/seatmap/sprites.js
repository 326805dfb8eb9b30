// @ts-check
/** The small pictures of seats: one a price tier, held, taken, mine. Painted once for a size and a colour scheme. */

/** @typedef {Record<"bg" | "floor" | "ink" | "held" | "sold" | "mine" | "font", string> & {tiers: string[]}} Theme */

/** @param {number} z diameter in device pixels @param {Theme} theme @returns {HTMLCanvasElement[]} the tiers in order, held, taken, mine */
export function sprites(z, theme) {
  const make = (/** @type {(g: CanvasRenderingContext2D) => void} */ paint) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = z + 2;
    const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    g.translate(z / 2 + 1, z / 2 + 1);
    paint(g);
    return canvas;
  };
  const disc = (/** @type {string} */ colour, size = 1) =>
    make((g) => {
      g.fillStyle = colour;
      g.beginPath();
      g.arc(0, 0, (z / 2) * size, 0, 7);
      g.fill();
    });
  return [
    ...theme.tiers.map((colour) => disc(colour)),
    make((g) => {
      g.strokeStyle = theme.held;
      g.lineWidth = Math.max(1, z * 0.1);
      g.beginPath();
      g.arc(0, 0, z * 0.36, 0, 7);
      g.stroke();
    }),
    disc(theme.sold, 0.55),
    make((g) => {
      g.fillStyle = theme.mine;
      g.beginPath();
      g.roundRect(-z / 2, -z / 2, z, z, z * 0.28);
      g.fill();
      g.strokeStyle = theme.bg;
      g.lineWidth = Math.max(1.5, z * 0.13);
      g.beginPath();
      g.moveTo(-z * 0.22, z * 0.02);
      g.lineTo(-z * 0.05, z * 0.18);
      g.lineTo(z * 0.24, -z * 0.18);
      g.stroke();
    })
  ];
}
