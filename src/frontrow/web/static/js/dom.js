// @ts-check
/** Small tools over the DOM, clean under Trusted Types: nodes are built, never parsed from text. */

/** @template {Element} [T=HTMLElement] @param {string} selector @param {ParentNode} [root] @returns {T} */
export function $(selector, root = document) {
  const found = root.querySelector(selector);
  if (!found) throw new Error(`no ${selector} on this page`);
  return /** @type {T} */ (/** @type {unknown} */ (found));
}

/** An element with attributes (`on…` are listeners) and children.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children @returns {HTMLElement} */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** Tell people who listen rather than look. @param {string} text */
export function say(text) {
  const box = $("#say");
  box.textContent = "";
  requestAnimationFrame(() => {
    box.textContent = text;
  });
}

/** The server's time in milliseconds, whatever this device's clock says. */
const asked = /** @type {PerformanceNavigationTiming | undefined} */ (performance.getEntriesByType("navigation")[0]);
const skew_ms =
  Number(document.documentElement.dataset.now || NaN) - (performance.timeOrigin + (asked?.responseStart ?? 0));
export const now_ms = () => Date.now() + (Number.isFinite(skew_ms) ? skew_ms : 0);

/** The JSON a page brought along. @param {string} id @returns {any} */
export const data = (id) => JSON.parse($(`#${id}`).textContent || "null");

/** A request to our own API. Never throws: a lost connection is status 0.
 * @param {string} path @param {{method?: string, body?: unknown, key?: string, headers?: Record<string, string>}} [how]
 * @returns {Promise<{ok: boolean, status: number, body: any, after_s: number}>} */
export async function ask(path, how = {}) {
  try {
    const sent = await fetch(path, {
      method: how.method ?? "GET",
      cache: "no-store",
      credentials: "same-origin",
      headers: {
        accept: "application/json",
        ...(how.body !== undefined && { "content-type": "application/json" }),
        ...(how.key && { "idempotency-key": how.key }),
        ...how.headers
      },
      body: how.body === undefined ? undefined : JSON.stringify(how.body)
    });
    const body = await sent.json().catch(() => ({}));
    return { ok: sent.ok, status: sent.status, body, after_s: Number(sent.headers.get("retry-after")) || 0 };
  } catch {
    return { ok: false, status: 0, body: {}, after_s: 0 };
  }
}
