// Unpacks the browser of the npm package @sparticuz/chromium into a folder: `node unpack-browser.mjs FOLDER`.
// Unpacked are the program, its graphics library, fonts, and shared libraries for machines that lack them.
// tests/support/chromium.py finds the result. The package unpacks to the system's temporary folder, so we name ours that.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const folder = resolve(process.argv[2]);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
process.env.TMPDIR = folder;

const { default: chromium, inflate } = await import("@sparticuz/chromium");
await chromium.executablePath();
const packed = join(dirname(fileURLToPath(import.meta.resolve("@sparticuz/chromium"))), "..", "bin");
await inflate(join(packed, "al2023.tar.br"));
writeFileSync(
  join(folder, "fonts.conf"),
  `<?xml version="1.0"?><fontconfig><dir>${join(folder, "fonts")}</dir><cachedir>${join(folder, "fonts-cache")}</cachedir></fontconfig>\n`
);
