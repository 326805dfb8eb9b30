// @ts-check
/** Reads QR codes out of pictures, beside the page: one engine (zxing-wasm) in every browser, so all gates see alike. */
import { prepareZXingModule, readBarcodes } from "../../vendor/zxing-wasm/reader/index.js";

const FILES = new URL("../../vendor/zxing-wasm/reader/", import.meta.url);
const HOW = { formats: ["QRCode"], tryHarder: true, tryInvert: true, maxNumberOfSymbols: 1 };
const post = /** @type {(message: unknown) => void} */ (/** @type {unknown} */ (self.postMessage.bind(self)));

prepareZXingModule({ overrides: { locateFile: (path) => new URL(path, FILES).href }, fireImmediately: true }).then(
  () => post({ ready: true }),
  (error) => post({ failed: String(error) })
);

self.onmessage = async (/** @type {MessageEvent<{pixels: ArrayBuffer, width: number, height: number}>} */ { data }) => {
  const began = performance.now();
  let text = "";
  try {
    const found = await readBarcodes(new ImageData(new Uint8ClampedArray(data.pixels), data.width, data.height), HOW);
    text = found[0]?.text ?? "";
  } catch {
    /* an unreadable picture is no code */
  }
  post({ text, ms: performance.now() - began });
};
