// @ts-check
/** The list of events at the gate: works without a line from its second visit on, and can be installed. */
import { $, h } from "../dom.js";
import { number, t } from "../words.js";
import { keepOffline, offerInstall } from "./install.js";
import { Store } from "./store.js";

/** Scans that this device has not handed in are shown where they belong. */
async function tellWaiting() {
  const store = await Store.opened();
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".shows a"))) {
    const waiting = await store.countWaiting(link.pathname.split("/")[2]);
    if (waiting) link.append(h("span", { class: "chip warn" }, t("Waiting to be sent: {n}", { n: number(waiting) })));
  }
}

tellWaiting().catch(() => {}); // a private window keeps nothing
offerInstall($("#install"));
keepOffline();
