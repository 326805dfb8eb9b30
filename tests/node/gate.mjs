// The gate's own modules on Node, for tests/web/site/test_gate_offline.py: JSON in on stdin, what they decide out.
import { blake2b } from "../../src/frontrow/web/static/js/gate/blake2b.js";
import { hex } from "../../src/frontrow/web/static/js/gate/codes.js";
import { Gate, canVerify } from "../../src/frontrow/web/static/js/gate/gate-check.js";
import { clockError } from "../../src/frontrow/web/static/js/gate/link.js";
import { after, cameTwice, decide, merge } from "../../src/frontrow/web/static/js/gate/presence.js";

/** Gates that pass and tell each other, as the page does with its store. */
function walk({ reentry, tickets, steps }) {
  const gates = [new Map(), new Map()];
  const known = (gate, n) => gates[gate].get(tickets[n].id);
  const keep = (gate, n, scans) => gates[gate].set(tickets[n].id, { ...tickets[n], scans });
  const told = steps.map(([what, gate, n, at_ms]) => {
    const scans = known(gate, n)?.scans ?? [];
    if (what === "learn") {
      const others = (known(1 - gate, n)?.scans ?? []).map((one) => ({ ...one, mine: false }));
      keep(gate, n, merge(scans, others));
      return cameTwice(known(gate, n).scans);
    }
    const same = tickets.flatMap((one, m) => (one.seat === tickets[n].seat ? (known(gate, m) ?? []) : []));
    const passage = decide(known(gate, n), same, tickets[n], what, reentry);
    if (["ok", "again", "left"].includes(passage)) {
      const at = new Date(at_ms).toISOString();
      const scan = after(scans, { scan: "", gate: String(gate), at, way: what, mine: true });
      scan.scan = `${gate}:${tickets[n].id}:${Date.parse(scan.at)}`;
      keep(gate, n, merge(scans, [scan]));
    }
    return passage;
  });
  const inside = gates.map((gate) => tickets.map(({ id }) => gate.get(id)?.scans.at(-1)?.way === "in"));
  return { told, inside };
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
const { bundle, asks = [], texts = [], lists = [], bundles = [], walks = [], clocks = [] } = JSON.parse(text);
const gate = await Gate.opened(bundle);
const verdicts = [];
for (const [code, now_us] of asks) {
  const { verdict, ticket } = await gate.verify(code, now_us);
  verdicts.push([verdict, ticket?.id ?? "", ticket ? [ticket.seat, ticket.fence, gate.type(ticket.seat)] : []]);
}
const opened = [];
for (const one of bundles)
  opened.push(
    await Gate.opened(one).then(
      () => true,
      () => false
    )
  );
const taken = [];
for (const list of lists) taken.push(await gate.revoke(list));
const hashes = texts.map(([given, size]) => hex(blake2b(new Uint8Array(Buffer.from(given, "hex")), size)));
const errors = clocks.map((times) => clockError(...times));
const shown = {
  can: await canVerify(),
  verdicts,
  hashes,
  lists: taken,
  bundles: opened,
  walks: walks.map(walk),
  errors
};
console.log(JSON.stringify(shown));
