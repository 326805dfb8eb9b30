// A connector at the edge, before a shop on another domain than its waiting room. At Cloudflare the worker is the default
// export and `wrangler deploy` starts it. Here Node runs the same worker. Room and shop, each in a terminal:
//   frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
//   PORT=8000 node examples/shops/edge_shop.mjs
import { createServer } from "node:http";
import { frontrow } from "../../connectors/javascript/worker.mjs";

const port = +(process.env.PORT ?? 8000), room = process.env.ROOM_URL ?? "http://127.0.0.1:8008";
const shop = process.env.SHOP_URL ?? `http://127.0.0.1:${port}`;
const escape = (text) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);

/** The shop at the origin: usually `(request) => fetch(request)`. */
function origin(request) {
  const person = decodeURIComponent(request.headers.get("frontrow-person") ?? "");
  const body = person ? `<h1>Welcome! Choose your seats.</h1><p>You are ${escape(person)}.</p>` : "ok";
  return new Response(body, { headers: { "content-type": "text/html; charset=utf-8" } });
}

const worker = frontrow({ room: `${room}/v1/events/aurora/room`, event: "aurora", shop, open_paths: ["/health"], rules_key: process.env.RULES_KEY }, origin);
export default worker;

createServer(async (req, res) => {
  const headers = new Headers();
  for (let i = 0; i < req.rawHeaders.length; i += 2) headers.append(req.rawHeaders[i], req.rawHeaders[i + 1]);
  const answer = await worker.fetch(new Request(new URL(req.url, shop), { method: req.method, headers }));
  res.writeHead(answer.status, [...answer.headers].flat());
  res.end(Buffer.from(await answer.arrayBuffer()));
}).listen(port, "127.0.0.1");
