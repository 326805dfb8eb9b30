// @ts-check
/** The small pictures of seats as pixels: one per price tier, held, taken, mine; with the seat's number where it is
 * large enough. Painted once per size and colour scheme, then copied into the map's pixels: copying 20,000 of them
 * takes a few milliseconds, painting them as many shapes takes a hundred. And the rings around seats that are marked. */

/** @typedef {Record<"bg" | "floor" | "ink" | "held" | "sold" | "mine" | "alone" | "font", string> & {tiers: string[]}} Theme */
/** @typedef {{size: number, pixels: Uint32Array, from: Uint8Array, to: Uint8Array}} Sprite pixels of a square; each line is painted between `from` and `to` */

const MOST_SIZES = 48,
  MOST_NUMBERED = 600,
  RING = 4.5,
  DOT = 2.2;

export class Sprites {
  /** @type {Map<number, Sprite[]>} by diameter */ #plain = new Map();
  /** @type {Map<string, Sprite>} by look and number, of one diameter */ #numbered = new Map();
  #numberedSize = 0;
  /** @param {Theme} theme */
  constructor(theme) {
    this.theme = theme;
    this.g = /** @type {CanvasRenderingContext2D} */ (
      document.createElement("canvas").getContext("2d", { willReadFrequently: true })
    );
  }

  /** The tiers in order, held, taken, mine. @param {number} z diameter in device pixels @returns {Sprite[]} */
  plain(z) {
    let found = this.#plain.get(z);
    if (!found) {
      if (this.#plain.size >= MOST_SIZES) this.#plain.clear();
      found = this.#paintAll(z);
      this.#plain.set(z, found);
    }
    return found;
  }

  /** A free seat with its number. @param {number} z @param {number} tier @param {string} label @returns {Sprite} */
  numbered(z, tier, label) {
    if (z !== this.#numberedSize || this.#numbered.size >= MOST_NUMBERED) this.#numbered.clear();
    this.#numberedSize = z;
    const key = `${tier} ${label}`;
    let found = this.#numbered.get(key);
    if (!found) {
      found = this.#make(z, (g) => {
        this.#disc(g, z, this.theme.tiers[tier]);
        g.fillStyle = this.theme.bg;
        g.font = `600 ${Math.min(z * 0.44, (z * 1.3) / Math.max(1, label.length))}px ${this.theme.font}`;
        g.textAlign = "center";
        g.textBaseline = "middle";
        g.fillText(label, 0, z * 0.03, z * 0.86);
      });
      this.#numbered.set(key, found);
    }
    return found;
  }

  /** @param {number} z @returns {Sprite[]} */
  #paintAll(z) {
    const { theme } = this;
    return [
      ...theme.tiers.map((colour) => this.#make(z, (g) => this.#disc(g, z, colour))),
      this.#make(z, (g) => {
        g.strokeStyle = theme.held;
        g.lineWidth = Math.max(1, z * 0.1);
        g.beginPath();
        g.arc(0, 0, z * 0.36, 0, 7);
        g.stroke();
      }),
      this.#make(z, (g) => this.#disc(g, z, theme.sold, 0.55)),
      this.#make(z, (g) => {
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

  /** @param {CanvasRenderingContext2D} g @param {number} z @param {string} colour @param {number} [part] */
  #disc(g, z, colour, part = 1) {
    g.fillStyle = colour;
    g.beginPath();
    g.arc(0, 0, (z / 2) * part, 0, 7);
    g.fill();
  }

  /** @param {number} z @param {(g: CanvasRenderingContext2D) => void} paint @returns {Sprite} */
  #make(z, paint) {
    const { g } = this,
      size = z + 2;
    if (g.canvas.width < size) g.canvas.width = g.canvas.height = size;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, size, size);
    g.translate(size / 2, size / 2);
    paint(g);
    const pixels = new Uint32Array(g.getImageData(0, 0, size, size).data.buffer),
      from = new Uint8Array(size),
      to = new Uint8Array(size);
    for (let y = 0; y < size; y++) {
      let first = 0,
        last = size;
      while (first < size && !pixels[y * size + first]) first++;
      while (last > first && !pixels[y * size + last - 1]) last--;
      from[y] = first;
      to[y] = last;
    }
    return { size, pixels, from, to };
  }
}

/** Copy a sprite into a picture, cut off at its edges.
 * @param {Uint32Array} into @param {number} width @param {number} height @param {Sprite} sprite @param {number} x @param {number} y */
export function copySprite(into, width, height, sprite, x, y) {
  const { size, pixels, from, to } = sprite,
    bottom = Math.min(size, height - y);
  for (let line = Math.max(0, -y); line < bottom; line++) {
    const first = Math.max(from[line], -x),
      last = Math.min(to[line], width - x),
      at = (y + line) * width + x,
      row = line * size;
    for (let p = first; p < last; p++) into[at + p] = pixels[row + p];
  }
}

/** Empty a square of a picture. @param {Uint32Array} into @param {number} width @param {number} height @param {number} size @param {number} x @param {number} y */
export function clearSquare(into, width, height, size, x, y) {
  const left = Math.max(0, x),
    right = Math.min(width, x + size);
  for (let line = Math.max(0, y); right > left && line < Math.min(height, y + size); line++)
    into.fill(0, line * width + left, line * width + right);
}

/** A seat that is proposed has a ring and a dot like those that are chosen; one that would be left alone a dashed ring.
 * @param {CanvasRenderingContext2D} g @param {number} x @param {number} y @param {boolean} proposed @param {Theme} theme @param {number} k */
export function markSeat(g, x, y, proposed, theme, k) {
  g.beginPath();
  g.arc(x, y, RING, 0, 7);
  g.lineWidth = Math.max(1, 2 / k);
  g.strokeStyle = theme.bg;
  g.stroke();
  g.setLineDash(proposed ? [] : [2, 1.5]);
  g.strokeStyle = proposed ? theme.mine : theme.alone;
  g.stroke();
  g.setLineDash([]);
  if (!proposed) return;
  g.fillStyle = theme.mine;
  g.beginPath();
  g.arc(x, y, DOT, 0, 7);
  g.fill();
}
