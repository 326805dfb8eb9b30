// @ts-check
/** Shows what the server pushes to this device. It lives under /push/, where no page is: it controls nothing else. */
const worker = /** @type {any} */ (self);
const FALLBACK = "/account";

/** Where a click leads: only to our own site, whatever was pushed. @param {unknown} given */
function ownUrl(given) {
  try {
    const url = new URL(String(given || FALLBACK), worker.location.origin);
    return url.origin === worker.location.origin ? url.href : FALLBACK;
  } catch { return FALLBACK; }
}
worker.addEventListener("push", (/** @type {any} */ event) => {
  const message = event.data?.json() ?? {};
  const options = { body: message.body, tag: message.id, data: { url: ownUrl(message.url) } };
  event.waitUntil(worker.registration.showNotification(message.title ?? "", options));
});
worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(worker.clients.openWindow(event.notification.data?.url ?? FALLBACK));
});
