// @ts-check
/** "Share": the phone's own list of people and apps, or the address in the clipboard. Without scripts it is a mail. */
import { say } from "./dom.js";
import { t } from "./words.js";

const SHOWN_MS = 3000;

for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[data-share]"))) {
  const words = link.textContent;
  link.addEventListener("click", async (event) => {
    const url = link.dataset.share ?? "";
    if (navigator.share) {
      event.preventDefault();
      await navigator.share({ title: document.title, url }).catch(() => {}); // closed without choosing
    } else if (navigator.clipboard) {
      event.preventDefault();
      const copied = await navigator.clipboard.writeText(url).then(
        () => true,
        () => false
      );
      if (!copied) return void location.assign(link.href);
      link.textContent = t("Link copied");
      say(t("Link copied"));
      setTimeout(() => (link.textContent = words), SHOWN_MS);
    }
  });
}
export {};
