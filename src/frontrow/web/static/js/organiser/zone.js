// @ts-check
/** The venue's time zone: that of its city if there is one, else this browser's, shown so that it can be corrected. */
const zone = /** @type {HTMLInputElement | null} */ (document.querySelector("#time_zone")),
  city = /** @type {HTMLInputElement | null} */ (document.querySelector("#city"));

/** @param {string} text */
const folded = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim()
    .toLowerCase();

if (zone && city) {
  const known = [.../** @type {NodeListOf<HTMLOptionElement>} */ (document.querySelectorAll("#zones option"))].map(
    (one) => one.value
  );
  const here = Intl.DateTimeFormat(document.documentElement.lang).resolvedOptions().timeZone;
  let ours = !zone.value || zone.value === here; // until somebody types another
  const suggest = () => {
    if (!ours) return;
    const named = known.filter(
      (one) => one.split("/").length === 2 && folded(one.split("/")[1]) === folded(city.value)
    );
    zone.value = named.length === 1 ? named[0] : here;
  };
  zone.addEventListener("input", () => {
    ours = false;
  });
  city.addEventListener("input", suggest);
  suggest();
}
export {};
