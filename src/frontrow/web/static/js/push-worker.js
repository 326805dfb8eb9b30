// @ts-check
/** Shows what the server pushes to this device. It lives under /push/, where no page is: it controls nothing else. */
const pushWorker = /** @type {any} */ (self);
const FALLBACK = "/account";

/** Where a click leads: only to our own site, whatever was pushed. @param {unknown} given */
function ownUrl(given) {
  try {
    const url = new URL(String(given || FALLBACK), pushWorker.location.origin);
    return url.origin === pushWorker.location.origin ? url.href : FALLBACK;
  } catch {
    return FALLBACK;
  }
}
pushWorker.addEventListener("push", (/** @type {any} */ event) => {
  const message = event.data?.json() ?? {};
  const options = { body: message.body, tag: message.id, data: { url: ownUrl(message.url) } };
  event.waitUntil(pushWorker.registration.showNotification(message.title ?? "", options));
});
pushWorker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(pushWorker.clients.openWindow(event.notification.data?.url ?? FALLBACK));
});
