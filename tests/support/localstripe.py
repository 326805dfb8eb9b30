"""A localstripe server of its own: a real Stripe-shaped API for tests, with webhooks and the provider's book."""

import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx

import tests.boxoffice.payments as money

SECRET_KEY, PUBLISHABLE_KEY, WEBHOOK_SECRET = "sk_test_localstripe", "pk_test_localstripe", "whsec_localstripe"
PROGRAM = f"{next(iter(money.__path__))}/localstripe_server.py"
NOTICES = (
    "payment_intent.amount_capturable_updated",
    "payment_intent.payment_failed",
    "payment_intent.requires_action",
    "payment_intent.succeeded",
    "payment_intent.canceled",
    "refund.created",
    "refund.updated",
    "refund.failed",
)


class LocalStripe:
    """`with LocalStripe() as stripe:` answers at `stripe.url`."""

    def __init__(self, listen: str = "127.0.0.1") -> None:
        self._listen = listen

    def __enter__(self) -> Self:
        self._process = subprocess.Popen([sys.executable, PROGRAM, self._listen], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        assert port, "localstripe did not start"
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, auth=(SECRET_KEY, ""), timeout=30)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()
        self._process.kill()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def send_webhooks_to(self, url: str) -> None:
        """From now on tell `url` what happens, signed."""
        form: dict[str, Any] = {"url": url, "secret": WEBHOOK_SECRET, "events[]": list(NOTICES)}
        self.client.post("/_config/webhooks/shop", data=form).raise_for_status()

    def send_no_webhooks(self) -> None:
        """From now on every notice is lost."""
        self.send_webhooks_to("http://127.0.0.1:9/lost")

    def go_down(self) -> None:
        """Our server is answered 503 from now on; browsers still reach Stripe."""
        self.client.post("/_config/down").raise_for_status()

    def come_back(self) -> None:
        self.client.delete("/_config/down").raise_for_status()

    def intents(self) -> list[dict[str, Any]]:
        """Every PaymentIntent in the provider's book, newest first."""
        found: list[dict[str, Any]] = self.client.get("/v1/payment_intents?limit=100").raise_for_status().json()["data"]
        return found

    def every_intent(self) -> Iterator[dict[str, Any]]:
        """Every PaymentIntent in the provider's book, page by page."""
        after: dict[str, str] = {}
        while True:  # until the last page
            page = self.client.get("/v1/payment_intents", params={"limit": "100"} | after).raise_for_status().json()
            yield from page["data"]
            if not page["has_more"]:
                return
            after = {"starting_after": page["data"][-1]["id"]}

    def intents_of(self, booking_id: str) -> list[dict[str, Any]]:
        """The PaymentIntents of one booking."""
        return [intent for intent in self.intents() if intent["metadata"].get("booking") == booking_id]
