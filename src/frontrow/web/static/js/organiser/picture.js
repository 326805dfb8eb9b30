// @ts-check
/** The picture of an event: the chosen file is put into the form and sent. */
const file = /** @type {HTMLInputElement | null} */ (document.querySelector("#picture-file"));
file?.addEventListener("change", () => {
  const chosen = file.files?.[0];
  if (!chosen) return;
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const field = /** @type {HTMLInputElement} */ (document.querySelector("#picture-text"));
    field.value = String(reader.result).split(",", 2)[1] ?? "";
    field.form?.requestSubmit();
  });
  reader.readAsDataURL(chosen);
});
export {};
