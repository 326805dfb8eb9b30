// The connector at the edge: Cloudflare Workers, Deno, Fastly and other runtimes with `fetch(request)`.
//   export default frontrow({ room, event, shop, open_paths }, (request) => fetch(request))
// `rules_key`: a key of the room's console for rules:read; `options.address(request)` says who the client is (at Cloudflare its
// header cf-connecting-ip). `shop(request)` fetches the page from the origin. It reads who is there in `Frontrow-Person`, which nobody can forge.
import { Connector, answerOf } from "./frontrow.mjs";

const OURS = ["frontrow-person", "frontrow-visit"];

export function frontrow(setup, shop, options) {
  const connector = new Connector(setup, options);
  const addressOf = options?.address ?? (() => "");
  return { fetch: (request, ...more) => handle(connector, shop, request, more, addressOf(request) ?? "") };
}

async function handle(connector, shop, request, more, address) {
  const url = new URL(request.url); // normalised by the runtime; the origin gets this very path
  const headers = Object.fromEntries([...request.headers]);
  const done = await connector.handle(request.method, url.pathname + url.search, headers, address);
  const answer = answerOf(done, connector.setup);
  if (answer) return new Response(request.method === "HEAD" ? null : answer.body, { status: answer.status, headers: answer.headers });
  const onward = new Request(request);
  for (const name of [...onward.headers.keys()]) if (OURS.includes(name.toLowerCase().replaceAll("_", "-"))) onward.headers.delete(name);
  if (done.person) onward.headers.set("frontrow-person", encodeURIComponent(done.person));
  if (done.visit) onward.headers.set("frontrow-visit", done.visit);
  const response = await shop(onward, ...more);
  if (!done.cookies?.length) return response;
  const changed = new Response(response.body, response);
  for (const line of done.cookies) changed.headers.append("set-cookie", line);
  return changed;
}
