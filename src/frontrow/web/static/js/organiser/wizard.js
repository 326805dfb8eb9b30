// @ts-check
/** Forms of the event wizard: the first mistake gets the keyboard, fields of a new venue show when one is made. */
/** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true]"))?.focus();

const box = document.querySelector("#new-venue");
const choices = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("#venues input[name=venue]"));
const follow = () => { if (box) /** @type {HTMLElement} */ (box).hidden = ![...choices].some((one) => one.checked && one.value === "new"); };
for (const one of choices) one.addEventListener("change", follow);
follow();

const more = document.querySelector("#more-fees");
const spare = () => /** @type {HTMLElement | null} */ (document.querySelector(".feeline.spare"));
more?.addEventListener("click", () => {
  const next = spare();
  next?.classList.remove("spare");
  next?.querySelector("input")?.focus();
  if (!spare()) /** @type {HTMLElement} */ (more).hidden = true;
});
if (more && !spare()) /** @type {HTMLElement} */ (more).hidden = true;
export {};
