// @ts-check
/** The walk as a fan: the fans' page in the frame leads nowhere, but its main button leads to the walk's next step, and
 * a choice at the checkout shows the page again with its price. */
import { $ } from "../dom.js";

const frame = /** @type {HTMLIFrameElement} */ ($("#walk")),
  next = /** @type {HTMLAnchorElement} */ ($("#next"));

/** The frame and the next step, for what is chosen now. @param {HTMLFormElement} form */
function choose(form) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of new FormData(form))
    if (/^(type\d+|add-.+|code)$/.test(name) && typeof value === "string") query.set(name, value);
  const [page] = frame.contentWindow?.location.href.split("?") ?? [];
  frame.contentWindow?.location.replace(`${page}?${query}`);
  next.search = String(query);
  history.replaceState(null, "", `?${query}`);
}

const lead = () => {
  const page = frame.contentDocument;
  page?.addEventListener("change", (e) => {
    const form = /** @type {Element} */ (e.target).closest("select")?.form;
    if (form?.id === "choice") choose(form); // what is typed waits for the button: nothing of it is lost
  });
  page?.addEventListener(
    "click",
    (e) => {
      const pressed = /** @type {Element} */ (e.target).closest("a, button");
      if (!pressed) return;
      e.preventDefault();
      const form = /** @type {HTMLFormElement | null} */ (pressed.closest("form#choice"));
      if (form) choose(form);
      else if (pressed.matches(".btn.primary")) location.assign(next.href);
    },
    true
  );
  page?.addEventListener("submit", (e) => e.preventDefault(), true);
};
frame.addEventListener("load", lead);
if (frame.contentDocument?.readyState === "complete") lead();
