// Runs the vectors through an adapter: `node adapters.mjs express|worker|snippet`. The last line says what was asked and wrong.
import { readFileSync } from "node:fs";
import { frontrow as express } from "../../connectors/javascript/express.mjs";
import { cookieName } from "../../connectors/javascript/frontrow.mjs";
import { visit } from "../../connectors/javascript/snippet.mjs";
import { frontrow as worker } from "../../connectors/javascript/worker.mjs";

const file = JSON.parse(readFileSync(new URL("../../connectors/vectors.json", import.meta.url)));
const options = (v) => ({ now: () => 1000 * v.now_s, call: async (url) => ({ status: 200, told: url.includes("/connector?") ? file.rooms[v.room] : { pass: "a.new.pass" } }) });
const away = (v) => v.room === "empty";

/** What an adapter answered: its status, where it leads, its cookies and who was let in. */
const asked = {
  async express(v) {
    const told = { status: 200, location: "", cookies: [], person: "" };
    const res = {
      set statusCode(status) { told.status = status; },
      appendHeader(name, value) { name === "set-cookie" ? told.cookies.push(value) : name === "location" ? (told.location = value) : 0; },
      end() {},
    };
    const req = { method: v.method, url: v.target, headers: v.headers };
    await express(file.setups[v.setup], options(v))(req, res, (error) => { if (error) throw error; told.person = req.frontrow.person ?? ""; });
    return told;
  },
  async worker(v) {
    const url = v.target.startsWith("/") && !v.target.startsWith("//") ? file.setups[v.setup].shop + v.target : "";
    if (!url || new URL(url).href !== url || url.includes("#") || ["TRACE", "CONNECT", "get"].includes(v.method)) return null; // the runtime refuses or tidies it
    if (/[\r\n\0]/.test(Object.values(v.headers).join(""))) return null;
    const headers = new Headers();
    try { for (const [name, value] of Object.entries(v.headers)) headers.append(name, value); } catch { return null; }
    headers.append("frontrow-person", "queen"), headers.append("frontrow_person", "queen");
    let person = "";
    const shop = async (request) => {
      if (request.headers.get("frontrow_person")) throw new Error("a forged header came through");
      person = decodeURIComponent(request.headers.get("frontrow-person") ?? "");
      return new Response("ok");
    };
    const answer = await worker(file.setups[v.setup], shop, options(v)).fetch(new Request(url, { method: v.method, headers }));
    return { status: answer.status, location: answer.headers.get("location") ?? "", cookies: answer.headers.getSetCookie(), person };
  },
  async snippet(v) {
    const setup = file.setups[v.setup], given = v.headers.cookie ?? "", kept = (kind) => given.split(/; ?/).find((one) => one.startsWith(`${cookieName(setup, kind)}=`))?.replace(/^[^=]*=/, "");
    if (v.method !== "GET" || v.headers["frontrow-pass"] || !(v.headers.accept ?? "").includes("text/html") || v.setup !== "https" || given.length > 4000) return null;
    const [pathname, query] = v.target.split(/\?(.*)/s), localStorage = { removeItem(name) { delete this[name]; } };
    if (kept("pass")) localStorage[cookieName(setup, "pass")] = kept("pass");
    if (kept("bind")) localStorage[cookieName(setup, "bind")] = kept("bind");
    if (!kept("bind") && v.target.includes("frontrow=")) return null; // a page always has a verifier: the room refuses it
    if (!kept("pass") === given.includes("pass-aurora=") || (kept("bind") ?? "").length === 0 !== !given.includes("bind-aurora")) return null; // other cookies than a page keeps
    const told = { status: 200, location: "", cookies: [], person: "" };
    const page = { location: { origin: setup.shop, pathname, search: query === undefined ? "" : `?${query}`, hash: "", replace(url) { told.status = 303; told.location = url; } }, localStorage, document: { documentElement: { dataset: {} } }, history: { replaceState(_a, _b, url) { told.status = 303; told.location = url; } } };
    const { look } = await visit(page, { room: setup.room, event: setup.event, open_paths: setup.open_paths }, options(v));
    const done = await look();
    return { ...told, person: done.person ?? "", cookies: [], snippet: done };
  },
}[process.argv[2]];

function problem(v, told) {
  const e = v.expect, noBind = (url) => url.replace(/bind=[\w-]{43}/, "");
  if (told.snippet && e.action === "room") return e.cookies || noBind(told.location) === noBind(e.location) ? (noBind(told.location) === noBind(e.location) ? "" : "location") : "location";
  if (told.snippet && e.action === "exchange") return told.location === e.page ? "" : "page";
  if (told.snippet && /room/.test(told.location) && e.code) return "";
  if (["pass", "open"].includes(e.action)) return told.status === 200 && told.person === (e.person ?? "") ? "" : "let in";
  if (["strip", "exchange"].includes(e.action)) return told.status === 303 && told.location === (e.page ?? e.location) ? "" : "page";
  if (e.action === "room") return told.status === 303 && noBind(told.location) === noBind(e.location) && told.cookies.length === (e.cookies ?? []).length ? "" : "room";
  if (e.action === "end") return told.status === 204 && told.cookies.length === 2 ? "" : "end";
  return [401, 403].includes(told.status) ? "" : "refuse";
}

const wrong = [];
let count = 0;
for (const v of file.vectors.filter((v) => !away(v))) {
  const told = await asked(v);
  if (!told) continue;
  count++;
  const what = problem(v, told);
  if (what) wrong.push([v.name, what, told.status, told.location]);
}
console.log(JSON.stringify({ asked: count, wrong }));
