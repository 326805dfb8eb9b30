"""Stripe and Adyen as their stand-ins play them, behind one interface: what fans, banks and notices do around a sale.

A `Bank` has the stand-in, our adapter for it, and the notices that were not handed over yet.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from aiohttp import web

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
from frontrow.boxoffice.payments.model.payment_methods import MethodFamily
from frontrow.shared.webhook_signature import sign
from frontrow.testing.clock import ManualClock
from tests.boxoffice.payments.adyen_server import AdyenServer, adyen_server, provider_of
from tests.boxoffice.payments.stripe_methods_server import StripeMethods

SECRET: Final = "whsec_simulated"  # that of the bank inside Stripe's stand-in


class Way(NamedTuple):
    """One way of paying. `in_form`: the fan gives it to the provider's own form, and our server is not called."""

    provider: str
    method: str
    family: MethodFamily = MethodFamily.RESERVE
    in_form: bool = False

    @property
    def is_slow(self) -> bool:
        return self.family is MethodFamily.SLOW

    def __str__(self) -> str:
        return f"{self.provider} {self.method}{' in the form' if self.in_form else ''}"


WAYS: Final = (
    Way("stripe", "pm_card_visa"),
    Way("stripe", "pm_card_visa", in_form=True),
    Way("stripe", "apple_pay", in_form=True),
    Way("stripe", "google_pay", in_form=True),
    Way("stripe", "ideal", MethodFamily.AT_ONCE),
    Way("stripe", "sepa_debit", MethodFamily.SLOW, in_form=True),
    Way("stripe", "klarna", in_form=True),
    Way("stripe", "bank_transfer", MethodFamily.SLOW),
    Way("adyen", "fan/visa"),
    Way("adyen", "ideal", MethodFamily.AT_ONCE),
)


class Charge(NamedTuple):
    """What one object of the provider did with a fan's money."""

    captured: int
    refunded: int
    reserved: bool


class Bank(Protocol):
    """The provider's side."""

    provider: Any

    def give_to_form(self, ref: str, method: str) -> None:
        """The fan confirms in the provider's own form."""

    def answer(self, url: str = "") -> Mapping[str, str]:
        """Fans agree on every page that asks them. Returns what the browser of the one who was sent to `url` brings
        back."""

    def pay_awaited(self) -> None:
        """The money comes that was awaited."""

    def charges(self, booking_id: str) -> list[Charge]: ...

    def take_notices(self) -> list[bytes]:
        """The notices since the last time."""

    def headers(self, body: bytes) -> dict[str, str]:
        """Those with which the provider sends it now. Each time that it is sent it is signed anew."""

    def forge(self, body: bytes) -> bytes:
        """The notice as somebody changed it who has not got the secret."""


class StripeBank:
    """Stripe."""

    def __init__(self, api: StripeMethods, url: str, clock: ManualClock) -> None:
        self.api, self.url, self._clock = api, url, clock
        self.provider: Any = StripeProvider("sk_test_1", SECRET, api_base=url)

    def give_to_form(self, ref: str, method: str) -> None:
        self.api.bank.confirm_in_browser(ref, method)

    def answer(self, url: str = "") -> Mapping[str, str]:
        for ref in list(self.api.bank.objects):
            self.api.bank.finish_action(ref)
        return {}

    def pay_awaited(self) -> None:
        for ref in list(self.api.bank.objects):
            self.api.bank.finish_money(ref)

    def charges(self, booking_id: str) -> list[Charge]:
        bank = self.api.bank
        mine = [one for one in bank.objects.values() if one["metadata"]["booking"] == booking_id]
        return [
            Charge(
                one["amount_received"],
                sum(back["amount"] for back in bank.state.refunds_of(one["id"]) if back["status"] != "failed"),
                bool(one["amount_capturable"]),
            )
            for one in mine
        ]

    def take_notices(self) -> list[bytes]:
        told = [body for body, _ in self.api.bank.notices]
        self.api.bank.notices.clear()
        return told

    def headers(self, body: bytes) -> dict[str, str]:
        return {"stripe-signature": sign(body, SECRET, self._clock())}

    def forge(self, body: bytes) -> bytes:
        return body.replace(b'"object"', b' "object"', 1)


class AdyenBank:
    """Adyen."""

    def __init__(self, server: AdyenServer, ledger: SqlLedger, clock: ManualClock) -> None:
        self.server = server
        self.provider: Any = provider_of(server, ledger, clock)

    def give_to_form(self, ref: str, method: str) -> None:
        raise NotImplementedError("Adyen's page is not one of the ways")

    def answer(self, url: str = "") -> Mapping[str, str]:
        for one in list(self.server.redirects):
            self.server.answer_redirect(one)
        return {"redirectResult": url.rpartition("/")[2]} if url else {}

    def pay_awaited(self) -> None:
        """None of its ways is slow."""

    def charges(self, booking_id: str) -> list[Charge]:
        mine = [one for one in self.server.payments.values() if one.reference.startswith(booking_id)]
        return [Charge(one.captured, one.refunded, one.is_reserved) for one in mine]

    def take_notices(self) -> list[bytes]:
        told = [*self.server.notices]
        self.server.notices.clear()
        return told

    def headers(self, body: bytes) -> dict[str, str]:
        return {}  # the signature is in the body

    def forge(self, body: bytes) -> bytes:
        return body.replace(b'"value": ', b'"value": 1', 1)


@contextlib.asynccontextmanager
async def stripe_bank(clock: ManualClock) -> AsyncIterator[StripeBank]:
    """The stand-in on a free port."""
    api = StripeMethods(clock)
    runner = web.AppRunner(api.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bank = StripeBank(api, f"http://127.0.0.1:{runner.addresses[0][1]}", clock)
    try:
        yield bank
    finally:
        await bank.provider.aclose()
        await runner.cleanup()


@contextlib.asynccontextmanager
async def a_bank(way: Way, ledger: SqlLedger, clock: ManualClock) -> AsyncIterator[Bank]:
    """The bank behind a way of paying."""
    if way.provider == "stripe":
        async with stripe_bank(clock) as stripe:
            yield stripe
        return
    async with adyen_server() as server:
        adyen = AdyenBank(server, ledger, clock)
        try:
            yield adyen
        finally:
            await adyen.provider.aclose()
