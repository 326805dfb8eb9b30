// @ts-check
/** Codes: a file is put into the form, and the first mistake gets the keyboard. */
import { $ } from "../dom.js";
import "./once.js";

$("#file").addEventListener("change", async (e) => {
  const file = /** @type {HTMLInputElement} */ (e.target).files?.[0];
  if (file) /** @type {HTMLTextAreaElement} */ ($("#text")).value = await file.text();
});
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();
