// @ts-check
/** Chosen files are put into the form's fields as base64; the form waits until they are read. */
/** @type {Promise<void>[]} */
let reading = [];

/** @param {HTMLInputElement} input */
async function read(input) {
  const field = /** @type {HTMLInputElement} */ (document.querySelector(`#${input.dataset.into}`));
  const chosen = input.files?.[0];
  const bytes = chosen ? new Uint8Array(await chosen.arrayBuffer()) : new Uint8Array();
  field.value = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("[data-into]"))) {
  input.addEventListener("change", () => reading.push(read(input)));
}
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    if (!reading.length) return;
    event.preventDefault();
    const waiting = reading;
    reading = [];
    // not at once: a form does not send itself while it tells that it is being sent
    Promise.allSettled(waiting).then(() => setTimeout(() => form.requestSubmit(event.submitter)));
  });
}
export {};
