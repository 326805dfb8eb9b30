// @ts-check
/** The link in the mail has its secret behind `#`, which no server sees: hand it over by a form, and forget it. */
import { $, say } from "./dom.js";
import { t } from "./words.js";

function redeem() {
  const secret = location.hash.slice(1);
  if (!secret) return;
  history.replaceState(null, "", location.pathname + location.search);
  /** @type {HTMLInputElement} */ ($("#link")).value = secret;
  say(t("Signing you in …"));
  /** @type {HTMLFormElement} */ ($("#redeem")).submit();
}
addEventListener("hashchange", redeem); // the link was opened in the tab that asked for it
redeem();
