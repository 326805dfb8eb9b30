// @ts-check
/** A page that changes in place: another page of ours is fetched, and the parts of this one that differ take over what
 * it says. The browser parses the answer as a document, so no text becomes markup here (Trusted Types). */

const PATIENCE_MS = 20_000;

/** Ask for a page, or send a form and follow its redirect. Never throws: null means that no page came.
 * @param {string} path @param {URLSearchParams} [form] @returns {Promise<{page: Document, url: string} | null>} */
export function fetchPage(path, form) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open(form ? "POST" : "GET", path);
    request.responseType = "document";
    request.timeout = PATIENCE_MS;
    for (const failed of ["error", "abort", "timeout"]) request.addEventListener(failed, () => done(null));
    request.addEventListener("load", () => {
      const page = request.responseXML;
      done(page && request.status < 500 && request.status !== 429 ? { page, url: request.responseURL } : null);
    });
    if (form) request.setRequestHeader("content-type", "application/x-www-form-urlencoded");
    request.send(form?.toString() ?? null);
  });
}

/** What people type and what they open belongs to them: of a field only what surrounds its value is taken over. */
const TYPED = new Set(["value", "checked", "selected", "open"]);

/** @param {Element} old @param {Element} fresh */
function takeAttributes(old, fresh) {
  for (const { name } of [...old.attributes])
    if (!TYPED.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (!TYPED.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
}

/** @param {Node} one @param {Node} other */
const alike = (one, other) =>
  one.nodeName === other.nodeName &&
  (!(one instanceof Element) || one.id === /** @type {Element} */ (other).id) &&
  (one.nodeName !== "OPTION" ||
    /** @type {HTMLOptionElement} */ (one).value === /** @type {HTMLOptionElement} */ (other).value);

/** Make a part of this page say what the fetched one says. Nodes that stay keep focus, caret and what was typed.
 * @param {Node} old @param {Node} fresh */
export function takeOver(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old instanceof Element) takeAttributes(old, /** @type {Element} */ (fresh));
  else old.nodeValue = fresh.nodeValue;
  const kept = [...old.childNodes];
  const pairs = [...fresh.childNodes].map((wanted) => {
    const found = kept.findIndex((one) => alike(one, wanted));
    return { wanted, found: found < 0 ? null : kept.splice(found, 1)[0] };
  });
  for (const gone of kept) old.removeChild(gone);
  /** @type {Node | null} */
  let at = old.firstChild;
  for (const { wanted, found } of pairs) {
    if (!found) old.insertBefore(document.importNode(wanted, true), at);
    else {
      takeOver(found, wanted);
      if (found === at) at = at.nextSibling;
      else old.insertBefore(found, at); // moved: it loses the focus, so only if the order has changed
    }
  }
}
