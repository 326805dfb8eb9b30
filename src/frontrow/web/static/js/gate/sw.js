// @ts-check
/** The gate's service worker: its page and its own files work offline. Nothing else is kept, and no API call.
 *
 * The server puts `self.gate = { version, files }` in front. Files are named after their hash: kept, never asked for again.
 * Pages come from the server if it answers in time, else as they were last seen. */
const worker = /** @type {any} */ (self);
/** @type {{version: string, files: string[]}} */
const { version, files } = worker.gate;
const OURS = "frontrow-door-",
  FILES = `${OURS}files-${version}`,
  PAGES = `${OURS}pages-${version}`;
const PATIENCE_MS = 4_000,
  MAX_PAGES = 20;
const known = new Set(files);

worker.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(install()));
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(activate()));
worker.addEventListener("message", (/** @type {any} */ event) => event.waitUntil(keep(event.data?.keep)));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== worker.location.origin) return;
  if (known.has(pathname)) event.respondWith(file(event.request, pathname));
  else if (event.request.mode === "navigate" && isPage(pathname)) event.respondWith(page(event.request, pathname));
});

/** @param {string} path */
const isPage = (path) => /^\/door(\/[\w-]{1,60})?$/.test(path);

async function install() {
  const cache = await caches.open(FILES);
  await cache.addAll(files);
  for (const name of await caches.keys()) {
    // pages seen under the last version, as they are now
    if (!name.startsWith(`${OURS}pages-`) || name === PAGES) continue;
    for (const request of (await (await caches.open(name)).keys()).slice(0, MAX_PAGES))
      await keep(new URL(request.url).pathname);
  }
  await worker.skipWaiting();
}

async function activate() {
  for (const name of await caches.keys())
    if (name.startsWith(OURS) && name !== FILES && name !== PAGES) await caches.delete(name);
  await worker.clients.claim();
}

/** @param {Request} request @param {string} path */
async function file(request, path) {
  return (await (await caches.open(FILES)).match(path)) ?? fetch(request);
}

/** Keep a page for later; a page that leads to signing in is not one. @param {string | undefined} path */
async function keep(path) {
  if (!path || !isPage(path)) return;
  const answer = await fetch(path, { credentials: "same-origin", redirect: "manual", cache: "no-store" }).catch(
    () => null
  );
  if (answer?.status === 200) await put(path, answer);
}

/** @param {string} path @param {Response} answer */
async function put(path, answer) {
  const cache = await caches.open(PAGES),
    kept = await cache.keys();
  if (kept.length >= MAX_PAGES) await cache.delete(kept[0]);
  await cache.put(path, answer);
}

/** @param {Request} request @param {string} path */
async function page(request, path) {
  const known = await (await caches.open(PAGES)).match(path);
  try {
    const answer = await fetch(request, known ? { signal: AbortSignal.timeout(PATIENCE_MS) } : {});
    if (answer.status === 200) await put(path, answer.clone());
    else if (answer.type === "opaqueredirect" || answer.status === 403) await caches.delete(PAGES); // signed out here
    if (answer.status < 500) return answer;
    return known ?? answer;
  } catch (error) {
    if (known) return known;
    throw error;
  }
}
