// @ts-check
/** BLAKE2b (RFC 7693), unkeyed: ticket codes carry short hashes of it, and browsers have none of their own. */
const BLOCK = 128,
  ROUNDS = 12;
const IV = [
  0x6a09e667f3bcc908n,
  0xbb67ae8584caa73bn,
  0x3c6ef372fe94f82bn,
  0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn,
  0x1f83d9abfb41bd6bn,
  0x5be0cd19137e2179n
];
const SIGMA = [
  "0123456789abcdef",
  "ea489fd61c02b753",
  "b8c052fdae367194",
  "7931dcbe265a40f8",
  "905724afe1bc683d",
  "2c6a0b834d75fe19",
  "c51fed4a0763928b",
  "db7ec13950f4862a",
  "6fe9b308c2d714a5",
  "a2847615fb9e3cd0"
].map((row) => Array.from(row, (digit) => parseInt(digit, 16)));
const COLUMNS = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14]
];

/** @param {bigint} value @param {bigint} by */
const turned = (value, by) => BigInt.asUintN(64, (value >> by) | (value << (64n - by)));

/** @param {bigint[]} v @param {number[]} at @param {bigint} x @param {bigint} y */
function mix(v, [a, b, c, d], x, y) {
  v[a] = BigInt.asUintN(64, v[a] + v[b] + x);
  v[d] = turned(v[d] ^ v[a], 32n);
  v[c] = BigInt.asUintN(64, v[c] + v[d]);
  v[b] = turned(v[b] ^ v[c], 24n);
  v[a] = BigInt.asUintN(64, v[a] + v[b] + y);
  v[d] = turned(v[d] ^ v[a], 16n);
  v[c] = BigInt.asUintN(64, v[c] + v[d]);
  v[b] = turned(v[b] ^ v[c], 63n);
}

/** @param {bigint[]} state @param {Uint8Array} block @param {number} counted @param {boolean} last */
function compress(state, block, counted, last) {
  const view = new DataView(block.buffer, block.byteOffset, BLOCK);
  const words = Array.from({ length: 16 }, (_, n) => view.getBigUint64(n * 8, true));
  const v = [...state, ...IV];
  v[12] ^= BigInt(counted);
  if (last) v[14] = BigInt.asUintN(64, ~v[14]);
  for (let round = 0; round < ROUNDS; round++) {
    const order = SIGMA[round % SIGMA.length];
    for (let n = 0; n < 8; n++) mix(v, COLUMNS[n], words[order[2 * n]], words[order[2 * n + 1]]);
  }
  for (let n = 0; n < 8; n++) state[n] ^= v[n] ^ v[n + 8];
}

/** The hash of `message`, `size` bytes long. @param {Uint8Array} message @param {number} size */
export function blake2b(message, size) {
  const state = [...IV];
  state[0] ^= 0x01010000n ^ BigInt(size);
  const padded = new Uint8Array(Math.max(1, Math.ceil(message.length / BLOCK)) * BLOCK);
  padded.set(message);
  for (let at = 0; at < padded.length; at += BLOCK) {
    const last = at + BLOCK >= padded.length;
    compress(state, padded.subarray(at, at + BLOCK), last ? message.length : at + BLOCK, last);
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, n) => out.setBigUint64(n * 8, word, true));
  return new Uint8Array(out.buffer, 0, size);
}
