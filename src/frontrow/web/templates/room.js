// The build shortens the names inside the block. `t` is outside: the texts to translate are found by its name.
const D = document, $ = (id) => D.getElementById(id), W = JSON.parse($("tr")?.textContent || "{}"), t = (s, v) => (W[s] || s).replace(/{(\w+)}/g, (a, n) => v?.[n] ?? a);
{
const bytes = (text) => new TextEncoder().encode(text), S = crypto.subtle, J = JSON.stringify, M = Math, H = "SHA-256", Q = "waiting", put = (id, text) => { $(id).textContent = text; }, F = $("join"), T = $("turn"), d = D.body.dataset, base = d.base, nf = new Intl.NumberFormat(D.documentElement.lang + "-u-nu-latn").format;
const AHEAD = t("People ahead of you"), DRAWN = t("You are in the draw"), LOST = t("Reconnecting – your place is kept"), SLOW = t("The queue is moving more slowly, so the wait is longer."), WHY = { paused: t("The queue is paused. Nobody loses their place."), queue_all: t("Everyone waits for a moment. Nobody loses their place."), capacity: SLOW, rate: SLOW, slower: SLOW, closed: t("The sale is closed at the moment.") };
let state = d.state, number = +d.number, lane = +d.lane, from = +d.from, doc = null, said = "", saidAt = 0, messageNo = -1, source = null, fails = 0, timer = 0, busy = false, turned = false;
const show = (id, on) => { if ($(id)) $(id).hidden = !on; };
const say = (text, now) => { const t = Date.now(); if (text !== said && (now || t - saidAt > 60000)) { said = text; saidAt = t; put("say", text); } };
const mode = (kind, text) => { $("mode").className = "chip " + kind; put("mode", text); };
// the server's own words are English: elsewhere its code is translated (in English there is no room for both: 14 KB)
const told = (b) => W[b.code] || ($("tr") ? "" : b.detail) || t("That did not work. Please try again.");
const bad = (text) => { put("bad", text); show("bad", !!text); };
let skew = 0;
const ask = async (path, init = {}) => { const r = await fetch(base + path, { cache: "no-store", ...init }); skew = Date.parse(r.headers.get("date")) - Date.now() || 0; const body = await r.json().catch(() => ({})); return { ok: r.ok, status: r.status, body, after: +r.headers.get("retry-after") || 0 }; };
const pause = (s) => new Promise((go) => setTimeout(go, 1000 * s));
const uuid = () => crypto.randomUUID?.() || "" + M.random();
const post = (path, key, body) => ask(path, { method: "POST", headers: { "content-type": "application/json", "idempotency-key": key }, body: J({ page: true, ...body }) });
const ahead = () => M.max(0, number - doc.l[lane][1] - 1);
const seconds = () => (doc.r[lane] > 0 ? ((ahead() + 1) * 1000) / doc.r[lane] : Infinity);
const wait = (s) => { if (!isFinite(s)) return t("not known yet"); const lo = M.floor((s * .75) / 60), hi = M.ceil((s * 1.25) / 60); return hi <= 1 ? t("about a minute") : lo < 1 ? t("up to {n} min", { n: hi }) : lo === hi ? t("about {n} min", { n: hi }) : t("{low}–{high} min", { low: nf(lo), high: nf(hi) }); };

// a server that has lost sight of the queue still shows an old window: nobody's position gets worse by it
function draw(o) {
  if (o && !(doc?.l[lane][1] > o.l[lane][1])) doc = o;
  if (!doc || state !== Q) return;
  if (doc.m !== messageNo) { messageNo = doc.m; if (doc.m) ask("/message").then(({ body }) => { put("words", body.message || ""); show("msg", !!body.message); }); else show("msg"); }
  const why = WHY[doc.y] || WHY[doc.s] || ""; put("why", why); show("why", !!why);
  if (!number) { if (doc.s !== "prequeue") refresh(); return; }
  const [lo, hi] = doc.l[lane];
  if (number <= lo) return refresh();
  if (number <= hi && doc.s !== "queue_all") return turn();
  const stopped = /pau|_all|clo/.test(doc.s), eta = stopped ? t("Paused") : wait(seconds()), n = nf(ahead());
  put("ahead", n); put("eta", eta); put("no", nf(number));
  put("rate", stopped ? "0" : nf(M.round(doc.r[lane] * .06)));
  $("bar").value = M.max(10, M.round((1000 * (hi - from)) / M.max(1, number - from)));
  D.title = stopped ? t("Paused") : t("{n} ahead – {wait}", { n, wait: eta });
  say(stopped ? WHY.paused : t("People ahead of you: {n}. Expected wait: {wait}.", { n, wait: eta }), !said || stopped);
}
async function refresh() {
  if (busy) return; busy = true;
  try {
    const { ok, status, body } = await ask("/status");
    if (ok) { state = body.state; number = body.position || 0; become(); }
    else if (status === 401 || status === 403) { state = "none"; become(); }
  } catch { mode("bad", LOST); if (!source) poll(); } finally { busy = false; }
}
function become() {
  show("join", state === "none" || state === "expired"); show("wait", state === Q); show("ready", state === Q); show("keep", state === Q || state === "active");
  put("h", { none: t("Waiting room"), waiting: t("You’re in the queue"), active: t("You’re in"), expired: t("Your turn has passed") }[state] || t("You’re in"));
  put("label", number ? AHEAD : DRAWN);
  if (state === "expired") bad(t("Your turn was not used in time. You can join again at the end of the queue."));
  if (state === "active") turn(); else if (state === Q) { listen(); draw(); } else { source?.close(); source = null; clearTimeout(timer); }
}
function turn() {
  if (turned) return; turned = true; state = "active";
  show("wait"); show("ready"); show("turn", true); put("h", t("You’re in")); D.title = t("It’s your turn");
  say(t("It is your turn. You are let in now."), true); T.querySelector("button").focus();
  try { if (Notification.permission === "granted") new Notification(t("It’s your turn")); } catch {} // phones have none here
  source?.close();
  // somebody who is looking is taken in by itself; a tab in the background is called, and goes in when looked at
  if (D.hidden) D.addEventListener("visibilitychange", enter, { once: true }); else enter();
}
async function enter() {
  // the same key for every try, also after a reload: an answer that got lost is given again
  const key = (sessionStorage.claim ||= uuid());
  for (let i = 0; i < 400; i++) {
    let r; try { r = await post("/claim", key, { wish: T.wish.value, proof: await proof() }); } catch { r = { status: 503, after: 2, body: {} }; }
    if (r.ok) { return location.assign(r.body.next || d.next); }
    if (r.status !== 503 && r.status !== 429 && r.body.code !== "not_your_turn" && (i || r.body.code !== "proof_invalid")) { show("turn"); state = "expired"; become(); bad(told(r.body)); return; }
    await pause(r.after || 2);
  }
}
function listen() {
  if (source || !self.EventSource) { if (!source) poll(); return; }
  source = new EventSource(base + "/stream");
  source.addEventListener("now-serving", (e) => { fails = 0; clearTimeout(timer); timer = setTimeout(wake, 9e4); mode("ok", t("Live")); draw(JSON.parse(e.data)); });
  source.onerror = () => { if (++fails >= 3 || source.readyState === 2) { source.close(); source = null; poll(); } else mode("warn", LOST); };
}
function poll() {
  clearTimeout(timer);
  const p = doc ? doc.p : [5, 300, 4], s = doc && number ? seconds() : 0;
  const next = M.min(p[1], M.max(p[0], isFinite(s) ? s / p[2] : p[1] / 4)) * (.85 + M.random() * .3);
  timer = setTimeout(tick, 1000 * next);
}
async function tick() {
  if (state !== Q || D.hidden) return;
  try { const { ok, body } = await ask("/now-serving", { cache: "default" }); if (ok) { mode("warn", t("Live (slow connection)")); draw(body); } } catch { mode("bad", LOST); }
  if (state === Q && !source) poll();
}
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
async function prove() {
  if (d.human !== "altcha") return F.querySelector("[name$=response]")?.value;
  const { body: c } = await ask("/challenge");
  for (let n = 0; n <= c.maxnumber; n++) if (hex(await S.digest(H, bytes(c.salt + n))) === c.challenge) return btoa(J({ algorithm: c.algorithm, challenge: c.challenge, number: n, salt: c.salt, signature: c.signature }));
}
// a place is bound to a key that nobody can export, not even this page: a copied place is worthless
const EC = { name: "ECDSA", namedCurve: "P-256", hash: H };
const b64 = (b) => btoa(String.fromCharCode(...new Uint8Array(b))).replace(/[+/=]/g, (c) => ({ "+": "-", "/": "_" })[c] || "");
const vault = (run) => new Promise((go, no) => { const o = indexedDB.open("frontrow", 1); o.onupgradeneeded = () => o.result.createObjectStore("k"); o.onerror = no; o.onsuccess = () => { const r = run(o.result.transaction("k", "readwrite").objectStore("k")); r.onsuccess = () => go(r.result); r.onerror = no; }; });
const jwk = async (pair) => { const { crv, kty, x, y } = await S.exportKey("jwk", pair.publicKey); return { crv, kty, x, y }; };
async function bind() {
  try { const pair = await S.generateKey(EC, false, ["sign", "verify"]); await vault((k) => k.put(pair, d.event)); return b64(await S.digest(H, bytes(J(await jwk(pair))))); } catch { return null; }
}
async function proof() {
  try {
    const pair = d.ath && (await vault((k) => k.get(d.event))); if (!pair) return null;
    const part = (o) => b64(bytes(J(o))), head = part({ typ: "place-proof+jwt", alg: "ES256", jwk: await jwk(pair) }) + "." + part({ ath: d.ath, evt: d.event, iat: M.floor((Date.now() + skew) / 1000) });
    return head + "." + b64(await S.sign(EC, pair.privateKey, bytes(head)));
  } catch { return null; }
}
F.onsubmit = async (e) => {
  e.preventDefault(); bad(""); const b = F.querySelector("button"), code = F.code.value.trim(); b.disabled = true; b.textContent = t("Joining…");
  try {
    const key = uuid(), cnf = await bind();
    // too much is going on, perhaps behind an address that many share: the same join again, by itself
    for (let i = 400; i--;) {
      const r = await post("/join", key, { proof: await prove(), cnf, ...(code && { code }) }), n = M.ceil(r.after * (1 + M.random()));
      if (r.ok) sessionStorage.removeItem("claim");
      // human_check_failed without a widget: the check began after this page was made, and comes with a new one
      if (r.ok || (/^hu/.test(r.body.code) && !$("widget").innerHTML)) return location.reload();
      bad(told(r.body) + (n ? " " + t("We try again in {n} s.", { n }) : ""));
      if (!n) return;
      await pause(n);
    }
  } catch { bad(t("No connection. Please try again.")); } finally { b.disabled = false; b.textContent = t("Join the queue"); }
};
F.code.value = location.hash.slice(1);
T.onsubmit = (e) => { e.preventDefault(); enter(); };
// a device that slept, flew or lay in a pocket holds a connection that may be dead without a word: begin anew
const wake = () => { if (state === Q && !D.hidden) { source = source?.close(); busy = fails = 0; refresh(); } };
D.onvisibilitychange = ononline = wake;
const ping = () => show("ping", self.Notification?.permission === "default"); ping();
if ($("ping")) $("ping").onclick = () => Notification.requestPermission().then(ping);
become();
}
