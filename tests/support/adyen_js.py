"""A stand-in for Adyen Web (Drop-in) in the browser, and Adyen's server for a whole shop.

Written from Adyen's public documentation of Web v6 and its sessions flow. It has the interface that our page uses,
draws its own fields, and talks to https://checkoutshopper-test.adyen.com, which Playwright leads to the stand-in of the
API; so the page's Content-Security-Policy is kept as it is. The file's hash is another one than that of Adyen's own.
A test says with `trusting` that this one is meant; without it the browser refuses to run the file.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Route

from frontrow.web.site.fans import drop_in
from tests.boxoffice.payments.adyen_server import AT_ONCE, CLIENT_KEY, AdyenServer, adyen_server

GOOD, DECLINED = "4111111111111111", "4000000000000002"
API, FILES = "https://checkoutshopper-test.adyen.com", "https://checkoutshopper-test.cdn.adyen.com"
CORS = {"access-control-allow-origin": "*", "access-control-allow-headers": "content-type"}
STYLE = ".adyen-checkout__dropin { display: block; }"
SCRIPT = """
window.AdyenWeb = (() => {
  const call = async (config, act, body) => {
    const where = `https://checkoutshopper-${config.environment}.adyen.com/checkoutshopper/v1/sessions`;
    const answer = await fetch(`${where}/${config.session.id}/${act}?clientKey=${config.clientKey}`,
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${act}: ${answer.status}`);
    return answer.json();
  };
  const AdyenCheckout = async (config) => {
    if (!config.countryCode) throw new Error("You must specify a countryCode when initializing checkout.");
    const found = await call(config, "setup", { sessionData: config.session.sessionData })
      .catch((error) => { config.onError(error); throw error; });
    return { config, methods: found.paymentMethods.map((one) => one.type) };
  };
  class Dropin {
    constructor(checkout) { Object.assign(this, checkout); }
    mount(at) {
      this.box = document.createElement("div");
      this.box.className = "adyen-checkout__dropin";
      for (const type of this.methods) {
        const label = this.box.appendChild(document.createElement("label")), radio = document.createElement("input");
        Object.assign(radio, { type: "radio", name: "adyen-method", value: type, checked: type === this.methods[0] });
        label.append(radio, type);
      }
      const label = this.box.appendChild(document.createElement("label"));
      this.number = label.appendChild(document.createElement("input"));
      this.number.id = "adyen-number";
      label.prepend("Card number ");
      document.querySelector(at).replaceChildren(this.box);
      return this;
    }
    unmount() { this.box.remove(); return this; }
    setStatus(status) { this.box.dataset.status = status; return this; }
    get method() { return this.box.querySelector("input:checked").value; }
    get isValid() { return this.method !== "scheme" || this.number.value.length === 16; }
    async submit() {
      if (!this.isValid) { this.number.setAttribute("aria-invalid", "true"); return; }
      const method = this.method, card = method === "scheme" ? this.number.value : "";
      const said = await call(this.config, "payments", { sessionData: this.config.session.sessionData, method, card })
        .catch((error) => { this.config.onError(error); });
      if (!said) { this.config.onPaymentFailed(undefined, this); return; }
      if (window.leaveAfterPaying) { document.title = "card taken"; return; }
      if (said.action) location.assign(said.action.url);
      else if (said.resultCode === "Authorised") this.config.onPaymentCompleted(said, this);
      else { this.setStatus("error"); this.config.onPaymentFailed(said, this); }
    }
  }
  return { AdyenCheckout, Dropin };
})();
"""


@contextlib.contextmanager
def running_adyen() -> Iterator[AdyenServer]:
    """The stand-in of Adyen's API in a thread of its own."""
    found: list[AdyenServer] = []
    loop, ready, done = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with adyen_server() as adyen:
            found.append(adyen)
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), name="adyen", daemon=True)
    thread.start()
    assert ready.wait(60), "the stand-in did not start"
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(60)
        loop.close()


@contextlib.contextmanager
def trusting() -> Iterator[None]:
    """Pages name the hashes of the stand-in's files instead of those of Adyen's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drop_in, "SCRIPT_HASH", _hash_of(SCRIPT))
        patch.setattr(drop_in, "STYLE_HASH", _hash_of(STYLE))
        yield


def _hash_of(text: str) -> str:
    return "sha384-" + base64.b64encode(hashlib.sha384(text.encode()).digest()).decode()


def bring_adyen(context: BrowserContext, adyen: AdyenServer) -> None:
    """From now on this person's browser finds the stand-ins where Adyen is."""
    files = {"js": (SCRIPT, "text/javascript"), "css": (STYLE, "text/css")}

    def give(route: Route) -> None:
        body, kind = files[route.request.url.rpartition(".")[2]]
        route.fulfill(body=body, content_type=kind, headers=CORS)

    context.route(f"{FILES}/**", give)
    context.route(f"{API}/**", lambda route: _answer(route, adyen))
    context.route("**/redirect/R*", lambda route: _bank(route, adyen))


def _answer(route: Route, adyen: AdyenServer) -> None:
    """What Adyen answers a browser: with the client key and the session's own data, no more."""
    if route.request.method == "OPTIONS":
        route.fulfill(status=204, headers=CORS)
        return
    parts = urlsplit(route.request.url)
    *_, session, act = parts.path.split("/")
    given = json.loads(route.request.post_data or "{}")
    found = adyen.set_up_session(session, given["sessionData"])
    if parse_qs(parts.query).get("clientKey") != [CLIENT_KEY] or found is None:
        route.fulfill(status=401, headers=CORS, json={"errorCode": "901"})
    elif act == "setup":
        route.fulfill(headers=CORS, json=found)
    else:
        card = "declined" if given["card"] == DECLINED else "visa"
        way = given["method"] if given["method"] in AT_ONCE else card
        route.fulfill(headers=CORS, json=adyen.pay_in_form(session, way))


def _bank(route: Route, adyen: AdyenServer) -> None:
    """The fan agrees at the bank, whose page sends them back as Adyen does."""
    result = adyen.answer_redirect(route.request.url)
    reference = adyen.payments[adyen.redirects[result]].reference
    session = next(one for one in adyen.sessions.values() if one["reference"] == reference)
    brought = urlencode({"sessionId": session["id"], "redirectResult": result})
    route.fulfill(status=302, headers={"location": f"{session['returnUrl']}?{brought}"})


def deliver_notices(adyen: AdyenServer, url: str) -> None:
    """Adyen's webhooks arrive."""
    while adyen.notices:
        answer = httpx.post(
            f"{url}/v1/webhooks/adyen", content=adyen.notices.pop(0), headers={"content-type": "application/json"}
        )
        assert answer.status_code == 200, answer.text


def pay_in_form(page: Page, number: str = GOOD) -> None:
    page.locator("#adyen-number").fill(number)
    page.locator("#go").click()
