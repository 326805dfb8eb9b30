// @ts-check
/** A form is sent once, however often its button is pressed. */
const buttons = () => /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("main form button"));
document.addEventListener("submit", () =>
  setTimeout(() => {
    for (const one of buttons()) one.setAttribute("aria-disabled", "true");
  })
);
document.addEventListener(
  "click",
  (e) => {
    if (/** @type {Element} */ (e.target).closest("main form button[aria-disabled=true]")) e.preventDefault();
  },
  true
);
addEventListener("pageshow", () => {
  for (const one of buttons()) one.removeAttribute("aria-disabled");
});
export {};
