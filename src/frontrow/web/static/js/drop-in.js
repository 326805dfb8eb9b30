// @ts-check
/** Adyen's form (Drop-in) on the checkout page. Our button pays. Each price has a payment and a session of its own, which
 * is asked for when the form is opened and looked at again before it is sent. Without the form the button leads to Adyen's
 * page. */
import { $, say } from "./dom.js";
import { t } from "./words.js";

/** @typedef {{secret: string, over: boolean}} Opening */

/** @param {HTMLFormElement} form @param {(on: boolean) => void} busy */
export function openDropIn(form, busy) {
  /** @type {any} */
  const adyen = /** @type {any} */ (window).AdyenWeb;
  const button = /** @type {HTMLButtonElement} */ ($("#go")),
    failed = $("#drop-in-err"),
    back = new URL(form.dataset.back ?? "", location.href);
  let secret = "",
    turn = 0;
  /** @type {any} */
  let shown = null;
  /** @type {Promise<void>} */
  let opened = Promise.resolve();

  /** @param {string} text */
  function fail(text) {
    failed.hidden = false;
    failed.textContent = text;
    shown?.setStatus("ready");
    busy(false);
  }
  /** @param {string} path */
  const send = (path) =>
    fetch(`${form.dataset.back}/${path}`, {
      method: "POST",
      body: new URLSearchParams(/** @type {any} */ (new FormData(form)))
    }).catch(() => null);

  /** The session of the present price. Null: nobody knows. @returns {Promise<Opening | null>} */
  async function ask() {
    const answer = await send("open");
    return answer?.ok ? answer.json() : null;
  }
  function close() {
    shown?.unmount();
    shown = null;
    secret = "";
  }

  /** Open the form, unless it is that of the present price already. @param {number} mine */
  async function open(mine) {
    const opening = await ask();
    if (mine !== turn) return; // the price changed again meanwhile
    if (opening?.over) {
      location.assign(back);
      return;
    }
    if (opening?.secret && opening.secret === secret) return;
    close();
    if (!opening?.secret) return;
    const [id, ...data] = opening.secret.split(":");
    const checkout = await adyen
      .AdyenCheckout({
        session: { id, sessionData: data.join(":") },
        clientKey: form.dataset.adyen,
        environment: form.dataset.environment,
        countryCode: form.dataset.country,
        locale: document.documentElement.lang,
        analytics: { enabled: false },
        showPayButton: false,
        onPaymentCompleted: (/** @type {any} */ result) => {
          if (result.sessionResult) {
            back.searchParams.set("sessionId", id);
            back.searchParams.set("sessionResult", result.sessionResult);
          }
          location.assign(back); // the server asks Adyen what came of it
        },
        onPaymentFailed: (/** @type {any} */ result) => refused(Boolean(result?.resultCode)),
        onError: () => fail(t("That did not work. Please try again."))
      })
      .catch(() => null);
    if (!checkout || mine !== turn) return;
    secret = opening.secret;
    shown = new adyen.Dropin(checkout).mount("#drop-in");
  }

  /** The price is another one, or there is one for the first time. */
  function takePrice() {
    const mine = ++turn;
    if (!Number(form.dataset.amount)) close();
    else
      opened = open(mine).catch(() => {
        if (mine === turn) close(); // no form: the button leads to Adyen's page
      });
  }

  /** Let the server look, and say what a refusal means for the seats. @param {boolean} known */
  async function refused(known) {
    const answer = known ? await send("look") : null,
      told = answer?.ok ? await answer.json() : null;
    if (told && !told.open) {
      location.assign(back);
      return;
    }
    const what = known
      ? t("The payment was not completed. Nothing was charged, and your seats are still held.")
      : t("That did not work. Please try again.");
    fail([what, told?.says ?? ""].join(" ").trim());
  }

  /** Hand over where the tickets go: Adyen's form does not come through our server. What is wrong, or nothing. */
  async function keepContact() {
    const answer = await send("contact");
    if (answer?.status === 422) {
      const email = /** @type {HTMLInputElement | null} */ (document.querySelector("#email"));
      email?.focus();
      return email?.value.trim() ? t("This does not look like an email address.") : t("Please enter an email address.");
    }
    return answer?.ok ? "" : t("That did not work. Please try again.");
  }

  async function pay() {
    failed.hidden = true;
    await opened;
    if (!shown) {
      form.submit(); // to Adyen's page
      return;
    }
    if (!shown.isValid) {
      shown.submit(); // shows what is missing, and sends nothing
      busy(false);
      return;
    }
    say(t("Paying …"));
    const wrong = await keepContact();
    if (wrong) {
      fail(wrong);
      return;
    }
    const now = await ask();
    if (!now) fail(t("That did not work. Please try again."));
    else if (now.secret !== secret)
      location.assign(back); // changed, paid or over, perhaps in another tab
    else shown.submit();
  }

  form.addEventListener("submit", (e) => {
    if (!Number(form.dataset.amount)) return; // free: a plain form
    e.preventDefault();
    if (button.disabled) return;
    busy(true);
    pay().catch(() => fail(t("That did not work. Please try again.")));
  });
  takePrice();
  return { takePrice };
}
