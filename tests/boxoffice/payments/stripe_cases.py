"""Stripe's official client against localstripe, for a module that names both fixtures."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
from frontrow.boxoffice.payments.model.provider_intents import Intent
from tests.contracts.payment_provider import ProviderCase

KEY = "sk_test_localstripe"
NUMBERS = {
    "visa": "4242424242424242",
    "declined": "4000000000000341",
    "3ds": "4000002500003155",
    "refund_fails": "4000000000005126",
    "refund_pends": "4000000000007726",
}


@pytest.fixture(scope="module")
def localstripe() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "localstripe_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, "localstripe did not start"
        yield f"http://127.0.0.1:{port}"
        server.kill()


@pytest.fixture
async def stripe_case(localstripe: str) -> AsyncIterator[ProviderCase]:
    cards = {}
    async with httpx.AsyncClient(base_url=localstripe, auth=(KEY, "")) as bank:
        for name, number in NUMBERS.items():
            form = {"type": "card", "card[number]": number, "card[exp_month]": "12", "card[exp_year]": "2033"}
            made = await bank.post("/v1/payment_methods", data=form | {"card[cvc]": "123"})
            cards[name] = made.json()["id"]

        async def answer(intent: Intent, success: bool) -> None:
            form = {"client_secret": intent.client_secret, "success": str(success).lower()}
            await bank.post(f"/v1/payment_intents/{intent.ref}/_authenticate", data=form)

        provider = StripeProvider(KEY, "whsec_test", api_base=localstripe)
        yield ProviderCase(provider, cards, answer)
        await provider.aclose()
