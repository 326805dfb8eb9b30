// @ts-check
/** Dialogs of the organisers' pages: one the server has opened becomes a real one, the others open by their buttons. */
const found = /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[data-modal]"));
if (found) {
  found.close();
  found.showModal();
}
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-opens]"))) {
  const dialog = /** @type {HTMLDialogElement | null} */ (
    document.querySelector(`#d-${CSS.escape(button.dataset.opens ?? "")}`)
  );
  button.addEventListener("click", () => dialog?.showModal());
}
for (const button of document.querySelectorAll("[data-close]"))
  button.addEventListener("click", () => button.closest("dialog")?.close());
export {};
