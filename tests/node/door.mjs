// The door's own modules on Node, for tests/web/site/test_door_offline.py: JSON in on stdin, what they decide out.
import { blake2b } from "../../src/frontrow/web/static/js/door/blake2b.js";
import { hex } from "../../src/frontrow/web/static/js/door/codes.js";
import { Gate, canVerify } from "../../src/frontrow/web/static/js/door/gate.js";
let text = "";
for await (const chunk of process.stdin) text += chunk;
const { bundle, asks = [], texts = [], lists = [], bundles = [] } = JSON.parse(text);
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
console.log(JSON.stringify({ can: await canVerify(), verdicts, hashes, lists: taken, bundles: opened }));
