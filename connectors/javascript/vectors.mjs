// Runs connectors/vectors.json in this runtime, and prints what differs: `node connectors/javascript/vectors.mjs`.
import { readFileSync } from "node:fs";
import { NOTHING, decide, learn } from "./frontrow.mjs";
import { readRules } from "./rules.mjs";

const [file, more] = ["vectors", "rules_vectors"].map((name) => JSON.parse(readFileSync(new URL(`../${name}.json`, import.meta.url))));
file.vectors.push(...more.vectors);
const known = Object.fromEntries(Object.entries(file.rooms).map(([name, told]) => [name, learn(NOTHING, told)]));
const plain = (done) => Object.fromEntries(Object.entries(done).filter(([, value]) => (Array.isArray(value) ? value.length : value)).sort());
let wrong = 0;
for (const v of file.vectors) {
  const rules = v.rules ? readRules(more.rules[v.rules], file.setups[v.setup].event, v.rules_read_s) : null;
  const done = await decide(file.setups[v.setup], { ...known[v.room], rules }, v.method, v.target, v.headers, v.now_s, file.fresh, v.address);
  const [found, wanted] = [plain(done), plain(v.expect)].map((one) => JSON.stringify(one));
  if (found !== wanted) console.log(`${v.name}\n  found  ${found}\n  wanted ${wanted}`), wrong++;
}
console.log(`${file.vectors.length - wrong} of ${file.vectors.length} vectors`);
process.exit(wrong ? 1 : 0);
