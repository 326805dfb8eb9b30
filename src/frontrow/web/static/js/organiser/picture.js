// @ts-check
/** The picture of an event: the chosen file is put into the form and sent. What was typed into the other form of the
 * page and not saved yet is there again afterwards. */
const KEPT_MS = 60_000; // a page that comes later is another visit
const file = /** @type {HTMLInputElement | null} */ (document.querySelector("#picture-file"));
const typed = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-keep]"));
const key = `frontrow-typed:${location.pathname}`;

/** The fields in which people type. @param {HTMLFormElement} form */
const fieldsOf = (form) =>
  /** @type {(HTMLInputElement | HTMLTextAreaElement)[]} */ ([
    ...form.querySelectorAll("input[name]:not([type=hidden]), textarea[name]")
  ]);

/** @param {HTMLFormElement} form */
function restore(form) {
  const kept = sessionStorage.getItem(key);
  if (!kept) return;
  sessionStorage.removeItem(key);
  const { at, values } = JSON.parse(kept);
  if (Date.now() - at > KEPT_MS) return;
  for (const field of fieldsOf(form)) {
    if (!(field.name in values) || field.value === values[field.name]) continue;
    field.value = values[field.name];
    setTimeout(() => field.dispatchEvent(new Event("input", { bubbles: true }))); // once the page's script listens
  }
}

if (typed) {
  restore(typed);
  file?.form?.addEventListener("submit", () => {
    const values = Object.fromEntries(fieldsOf(typed).map((field) => [field.name, field.value]));
    sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), values }));
  });
}

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
