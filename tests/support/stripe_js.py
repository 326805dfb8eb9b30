"""A stand-in for Stripe.js in the browser: a card form whose confirm really calls localstripe.

Live Stripe.js cannot be had in a test. This one has the interface our pages use, draws its own fields, and talks to
https://api.stripe.com, which Playwright leads to localstripe; so the page's Content-Security-Policy is kept as it is.
The bank's question (3-D Secure) is a little dialog in the page. With `have_a_wallet` the express element is one button,
whose wallet has a card and an address. `leave_after_paying` is a tab that is closed, or loses its network, the moment
the card was taken: `confirmPayment` never answers.
"""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.support.localstripe import PUBLISHABLE_KEY, LocalStripe

GOOD, DECLINED, MISTYPED, ASKS_BANK = "4242424242424242", "4000000000000002", "4000000000000127", "4000002500003155"
CORS = {"access-control-allow-origin": "*"}
SCRIPT = """
window.Stripe = (key) => {
  const call = async (path, fields) => {
    const answer = await fetch(`https://api.stripe.com/v1/payment_intents/${path}`, { method: "POST", body: new URLSearchParams({ key, ...fields }) });
    return answer.json();
  };
  const ask = (intent) => new Promise((done) => {
    const dialog = document.body.appendChild(document.createElement("dialog"));
    for (const [text, success] of [["Bank: yes, it is me", "true"], ["Bank: no", "false"]]) {
      const button = dialog.appendChild(document.createElement("button"));
      button.textContent = text;
      button.addEventListener("click", () => { dialog.remove(); done(success); });
    }
    dialog.showModal();
  });
  const finish = async (intent) => {
    if (intent.error) return { error: { type: "card_error", ...intent.error } };
    if (intent.status === "requires_action") {
      const success = await ask(intent);
      intent = await call(`${intent.id}/_authenticate`, { client_secret: intent.client_secret, success });
      if (intent.error || intent.status === "requires_payment_method") return { error: { type: "card_error", message: "We are unable to authenticate your payment method." } };
    }
    if (window.leaveAfterPaying) { document.title = "card taken"; await new Promise(() => {}); }
    return { paymentIntent: intent };
  };
  const typed = () => window.byWallet ? "4242424242424242" : document.querySelector("#stripe-number").value.replaceAll(" ", "");
  const id = (secret) => secret.split("_secret")[0];
  return {
    elements: ({ mode, amount, currency }) => ({
      amount,
      update(changes) { this.amount = changes.amount; },
      submit: async () => {
        const number = typed();
        return number.length === 16 ? {} : { error: { type: "validation_error", message: "Your card number is incomplete." } };
      },
      create: (kind) => ({
        on(name, hear) { this[name] = hear; },
        mount(at) {
          if (kind === "expressCheckout") {
            this.ready?.({ availablePaymentMethods: window.hasWallet ? { applePay: true } : undefined });
            const button = document.createElement("button");
            button.type = "button"; button.textContent = "Wallet";
            button.addEventListener("click", () => { window.byWallet = true; this.confirm({ billingDetails: { email: "wallet@example.org" } }); });
            if (window.hasWallet) document.querySelector(at).replaceChildren(button);
            return;
          }
          const label = document.createElement("label"), number = label.appendChild(document.createElement("input"));
          label.prepend("Card number ");
          number.id = "stripe-number";
          document.querySelector(at).replaceChildren(label);
        },
      }),
    }),
    confirmPayment: async ({ elements, clientSecret }) => {
      const number = typed();
      return finish(await call(`${id(clientSecret)}/confirm`, { client_secret: clientSecret, number, amount: elements.amount }));
    },
    handleNextAction: async ({ clientSecret }) => finish({ id: id(clientSecret), client_secret: clientSecret, status: "requires_action" }),
  };
};
"""  # noqa: E501


def bring_stripe_js(context: BrowserContext, stripe: LocalStripe) -> None:
    """From now on this person's browser finds the stand-in at js.stripe.com and localstripe at api.stripe.com."""
    context.route("https://js.stripe.com/**", lambda route: route.fulfill(body=SCRIPT, content_type="text/javascript"))
    context.route("https://api.stripe.com/**", lambda route: _answer(route, stripe))


def _answer(route: Route, stripe: LocalStripe) -> None:
    """What Stripe answers a browser: with the publishable key and the payment's own secret it may confirm, no more."""
    form = dict(parse_qsl(route.request.post_data or ""))
    _, _, _, ref, act = urlsplit(route.request.url).path.split("/")
    found = stripe.client.get(f"/v1/payment_intents/{ref}").json()
    if form.pop("key") != PUBLISHABLE_KEY or form["client_secret"] != found["client_secret"]:
        route.fulfill(status=401, headers=CORS, json={"error": {"message": "Invalid API key or client secret"}})
        return
    if act == "confirm" and int(form["amount"]) != found["amount"]:  # as Stripe does for a form opened with an amount
        message = "The amount of the elements differs from that of the payment."
        route.fulfill(status=400, headers=CORS, json={"error": {"type": "invalid_request_error", "message": message}})
        return
    answer = _confirm(stripe, ref, form) if act == "confirm" else _authenticate(stripe, ref, form)
    route.fulfill(status=answer.status_code, headers=CORS, json=answer.json())


def _confirm(stripe: LocalStripe, ref: str, form: dict[str, str]) -> httpx.Response:
    card = {"number": form["number"], "exp_month": "12", "exp_year": "2033", "cvc": "123"}
    given = {"type": "card"} | {f"card[{name}]": value for name, value in card.items()}
    method = stripe.client.post("/v1/payment_methods", data=given).raise_for_status().json()["id"]
    return stripe.client.post(f"/v1/payment_intents/{ref}/confirm", data={"payment_method": method})


def _authenticate(stripe: LocalStripe, ref: str, form: dict[str, str]) -> httpx.Response:
    fields: dict[str, Any] = {"client_secret": form["client_secret"], "success": form["success"]}
    return stripe.client.post(f"/v1/payment_intents/{ref}/_authenticate", data=fields)


def have_a_wallet(context: BrowserContext) -> None:
    """This browser has Apple Pay."""
    context.add_init_script("window.hasWallet = true")


def leave_after_paying(page: Page) -> None:
    """This tab never hears that the card was taken; `wait_until_taken` waits for that moment."""
    page.evaluate("window.leaveAfterPaying = true")


def wait_until_taken(page: Page) -> None:
    expect(page).to_have_title("card taken")


def pay_on_stripes_form(page: Page, number: str = GOOD) -> None:
    """Type a card number into Stripe's form and press the button."""
    page.locator("#stripe-number").fill(number)
    page.locator("#go").click()
