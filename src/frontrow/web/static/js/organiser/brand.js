// @ts-check
/** The brand page: a chosen colour is shown at once, in light and in dark, in the shades that the server would use. */
import { $, ask, say } from "../dom.js";
import { t } from "../words.js";
import "./once.js";
import "./picture.js";

const PAUSE_MS = 150;
const SHADES = ["brand", "brand_fill", "brand_hover", "on_brand", "brand_soft"];
const field = /** @type {HTMLInputElement} */ ($("#colour"));
const pick = /** @type {HTMLInputElement | null} */ (document.querySelector("#pick"));
let asked = "";
let timer = 0;

/** Ask for the shades of what is typed, and show them unless something else was typed meanwhile. */
async function show() {
  const colour = field.value.trim().toLowerCase();
  if (!/^#([0-9a-f]{3}|[0-9a-f]{6})$/.test(colour) || colour === asked) return;
  asked = colour;
  const answer = await ask(`/v1/organiser/brand/preview?colour=${encodeURIComponent(colour)}`);
  if (!answer.ok || asked !== colour) return;
  for (const look of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".look"))) {
    const shades = answer.body[look.dataset.scheme ?? "light"];
    for (const name of SHADES) look.style.setProperty(`--${name.replaceAll("_", "-")}`, shades[name]);
    const note = /** @type {HTMLElement} */ (look.parentElement?.querySelector(".adjusted"));
    note.hidden = !shades.adjusted;
    note.textContent = t("Links are shown as {colour}, so that everyone can read them.", { colour: shades.brand });
  }
  if (pick) pick.value = answer.body.colour;
  say(t("The preview shows {colour}.", { colour }));
}

const soon = () => {
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE_MS);
};
field.addEventListener("input", soon);
pick?.addEventListener("input", () => {
  field.value = pick.value;
  soon();
});
export {};
