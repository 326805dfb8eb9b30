// @ts-check
/** Shows what the server pushes to this device. It lives under /push/, where no page is: it controls nothing else. */
const pushes = /** @type {any} */ (self);
pushes.addEventListener("push", (/** @type {any} */ event) => {
  const told = event.data?.json() ?? {};
  event.waitUntil(pushes.registration.showNotification(told.title ?? "", { body: told.body, tag: told.id }));
});
pushes.addEventListener("notificationclick", (/** @type {any} */ event) => {
  event.notification.close();
  event.waitUntil(pushes.clients.openWindow("/account"));
});
