// @ts-check
/** A link in a message has its capability behind `#`, which no server sees: hand it over by a form, and forget it. */
import { $, say } from "./dom.js";
import { t } from "./words.js";

function open() {
  const capability = location.hash.slice(1);
  if (!capability) return;
  history.replaceState(null, "", location.pathname);
  /** @type {HTMLInputElement} */ ($("#link")).value = capability;
  say(t("Opening …"));
  /** @type {HTMLFormElement} */ ($("#redeem")).submit();
}
addEventListener("hashchange", open);
open();
