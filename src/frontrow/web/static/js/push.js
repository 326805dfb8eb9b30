// @ts-check
/** "Notify this device": subscribes this browser to web push for the account that is signed in, or ends that. */
import { $, ask, say } from "./dom.js";
import { t } from "./words.js";

const box = document.querySelector("[data-push]"),
  csrf = { "x-csrf-token": box?.getAttribute("data-csrf") ?? "" };
// scripts cannot name a worker by plain text here (Trusted Types): this policy allows exactly ours; a page without the
// box, such as a guest's waitlist, allows no policy
const urls =
  box &&
  /** @type {any} */ (window).trustedTypes?.createPolicy("frontrow-push", { createScriptURL: () => "/push/worker.js" });

async function start() {
  if (!box || !navigator.serviceWorker || !window.PushManager) return box?.remove();
  const home = await navigator.serviceWorker.register(urls?.createScriptURL("") ?? "/push/worker.js", {
    scope: "/push/"
  });
  const button = /** @type {HTMLButtonElement} */ ($("button", box)),
    text = $("p", box);
  let known = await home.pushManager.getSubscription();
  const show = () => {
    button.textContent = known ? t("Stop notifying this device") : t("Notify this device");
    button.disabled = false;
  };
  const failed = () => {
    text.textContent =
      Notification.permission === "denied"
        ? t("This browser does not allow notifications from us. You can change that in its settings.")
        : t("That did not work. Please try again.");
    say(text.textContent);
  };
  button.addEventListener("click", async () => {
    try {
      if (known) await leave(known);
      else known = await enter(home);
      if (!(await home.pushManager.getSubscription())) known = null;
    } catch {
      failed();
    }
    show();
    say(button.textContent ?? "");
  });
  show();
}

/** @param {ServiceWorkerRegistration} home */
async function enter(home) {
  const made = await home.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: box?.getAttribute("data-push") ?? ""
  });
  const { endpoint, keys } = made.toJSON();
  const answer = await ask("/v1/me/push", { method: "POST", body: { endpoint, keys }, headers: csrf });
  if (!answer.ok) {
    await made.unsubscribe();
    throw new Error(String(answer.status));
  }
  const me = await ask("/v1/me"),
    channels = [...new Set([...(me.body.preferences?.channels ?? []), "push"])];
  if (me.ok) await ask("/v1/me/preferences", { method: "PATCH", body: { channels }, headers: csrf });
  return made;
}

/** @param {PushSubscription} known */
async function leave(known) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(known.endpoint));
  const id = [...new Uint8Array(bytes)]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .slice(0, 24);
  await ask(`/v1/me/push/psh_${id}`, { method: "DELETE", headers: csrf });
  await known.unsubscribe();
}
start();
