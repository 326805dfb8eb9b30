// @ts-check
/** An event's page: the question before cancelling is a dialog; a running cancellation is looked at again. */
import "../again.js";
import "./once.js";

const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#cancel"));
document.querySelector("#ask-cancel")?.addEventListener("click", (e) => {
  if (!dialog) return;
  e.preventDefault();
  dialog.showModal();
});
dialog?.querySelector("[data-close]")?.addEventListener("click", (e) => {
  e.preventDefault();
  dialog.close();
});
