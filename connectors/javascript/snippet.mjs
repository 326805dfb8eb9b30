// The connector for static pages, in the browser:
//   <script type="module" src="/frontrow/snippet.mjs" data-room="https://room.example/v1/events/aurora/room" data-event="aurora"></script>
// It leads visitors through the room and back. It protects nothing: whoever switches scripts off sees the page. What must be
// protected needs one of the other connectors. `document.documentElement.dataset.frontrow` is "in" once a visitor is let in,
// and `window.frontrow.end()` ends the visit. It needs https: browsers verify signatures only there.
import { Connector, b64, cookieName } from "./frontrow.mjs";

const RENEW_MS = 15000;

/** Runs the connector for a page. `place` is like `window`: location, history, localStorage, document. */
export async function visit(place, setup, options) {
  const shop = place.location.origin, form = (given) => new URLSearchParams({ pass: given });
  const connector = new Connector({ open_paths: [], ...setup, shop }, { call: callFromPage, ...options });
  const name = (kind) => cookieName(connector.setup, kind), store = place.localStorage;
  const verifier = (store[name("bind")] ||= b64(crypto.getRandomValues(new Uint8Array(32))));
  const end = async () => {
    await connector.call(`${setup.room}/give-back`, form(store[name("pass")] ?? ""), {});
    store.removeItem(name("pass"));
    delete place.document.documentElement.dataset.frontrow;
  };
  const look = async () => {
    const target = place.location.pathname + place.location.search;
    const headers = { accept: "text/html", cookie: `${name("bind")}=${verifier}; ${name("pass")}=${store[name("pass")] ?? ""}` };
    const done = await connector.handle("GET", target, headers);
    if (done.pass) store[name("pass")] = done.pass;
    if (done.action === "strip") place.history.replaceState(null, "", done.location + place.location.hash);
    if (done.action === "strip" || done.action === "pass") place.document.documentElement.dataset.frontrow = "in";
    if (done.action === "room") place.location.replace(done.location);
    return done;
  };
  return { connector, look, end };
}

/** Calls without headers of one's own, so that browsers ask no leave first; the room allows the shop to read the answer. */
async function callFromPage(url, body, headers) {
  const sent = headers["Frontrow-Pass"] ? new URLSearchParams({ pass: headers["Frontrow-Pass"] }) : body;
  try {
    const init = sent === null ? {} : { method: "POST", body: sent, keepalive: true };
    const answer = await fetch(url, { ...init, credentials: "omit", cache: "no-store", signal: AbortSignal.timeout(5000) });
    return { status: answer.status, told: await answer.json() };
  } catch (error) {
    console.warn(`frontrow: the waiting room at ${url} does not answer: ${error}`);
    return { status: 0, told: {} };
  }
}

const script = globalThis.document?.querySelector("script[data-room][data-event]");
if (script) {
  const { look, end } = await visit(globalThis, { room: script.dataset.room, event: script.dataset.event });
  globalThis.frontrow = { end };
  const again = async () => {
    const { action } = await look();
    if (action === "pass" || action === "strip" || action === "away") setTimeout(again, action === "away" ? 2000 : RENEW_MS);
  };
  await again();
}
