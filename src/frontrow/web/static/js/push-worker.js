// @ts-check
/** Shows what the server pushes to this device. It lives under /push/, where no page is: it controls nothing else. */
const worker = /** @type {any} */ (self);
worker.addEventListener("push", (/** @type {any} */ event) => {
  const told = event.data?.json() ?? {};
  event.waitUntil(worker.registration.showNotification(told.title ?? "", { body: told.body, tag: told.id }));
});
worker.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(worker.clients.openWindow("/account"));
});
