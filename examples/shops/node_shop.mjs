// A shop on another domain than its waiting room, in Node (20 or newer). Room and shop, each in a terminal:
//   frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
//   PORT=8000 node examples/shops/node_shop.mjs
import { createServer } from "node:http";
import { frontrow } from "../../connectors/javascript/express.mjs";

const port = +(process.env.PORT ?? 8000), room = process.env.ROOM_URL ?? "http://127.0.0.1:8008";
const shop = process.env.SHOP_URL ?? `http://127.0.0.1:${port}`;
const guard = frontrow({ room: `${room}/v1/events/aurora/room`, event: "aurora", shop, open_paths: ["/health"], rules_key: process.env.RULES_KEY });
const escape = (text) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);

createServer((req, res) =>
  guard(req, res, (error) => {
    if (error) return res.writeHead(500).end();
    const { person } = req.frontrow;
    res.setHeader("content-type", "text/html; charset=utf-8");
    res.end(person ? `<h1>Welcome! Choose your seats.</h1><p>You are ${escape(person)}.</p>` : "ok");
  })
).listen(port, "127.0.0.1");
