// @ts-check
/** The gate's page as an app: its service worker, and the browser's offer to install it. Also the one place that makes
 * script addresses under Trusted Types: two of our own files, nothing else. */
const WORKER = new URL("./scan-worker.js", import.meta.url).href,
  SERVICE = new URL("/door/sw.js", location.href).href;
const types = /** @type {any} */ (window).trustedTypes;
const policy = types?.createPolicy("frontrow-door", {
  createScriptURL: (/** @type {string} */ url) => {
    if (url !== WORKER && url !== SERVICE) throw new TypeError("the gate loads no such script");
    return url;
  }
});
/** @param {string} url @returns {string} */
const trusted = (url) => policy?.createScriptURL(url) ?? url;

/** The worker that reads pictures. */
export const scanWorker = () => new Worker(trusted(WORKER), { type: "module" });

/** Register the service worker and have it keep this page; a browser that will not, or a private window, goes without. */
export async function keepOffline() {
  if (!("serviceWorker" in navigator)) return;
  try {
    await navigator.serviceWorker.register(trusted(SERVICE), { scope: "/door" });
    const { active } = await navigator.serviceWorker.ready;
    active?.postMessage({ keep: location.pathname });
  } catch {
    /* the page works, but a reload needs the line */
  }
}

/** Shows `button` when the browser would install this page. @param {HTMLElement} button */
export function offerInstall(button) {
  addEventListener("beforeinstallprompt", (event) => {
    event.preventDefault();
    button.hidden = false;
    button.onclick = () => {
      button.hidden = true;
      /** @type {any} */ (event).prompt();
    };
  });
}

/** Everything this device kept of the pages. */
export async function forgetPages() {
  for (const name of await caches.keys()) if (name.startsWith("frontrow-door-")) await caches.delete(name);
}
