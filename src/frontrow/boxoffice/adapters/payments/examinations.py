"""What `frontrow doctor --payments` needs of a provider beside the port.

Its test cards, what is registered there, and a webhook as the provider would sign it. A provider of one's own may
offer the same as `examination()`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast, runtime_checkable

import httpx
import msgspec

from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.adyen_webhooks import signed_webhook
from frontrow.boxoffice.adapters.payments.simulated import SIGNATURE as SIMULATED_SIGNATURE
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.payments.model.provider_intents import ProviderUnknown
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.core.clock import US_PER_S
from frontrow.shared.webhook_signature import sign

TIMEOUT_S: Final = 20.0
STRIPE_API: Final = "https://api.stripe.com"
STRIPE_SIGNATURE: Final = "stripe-signature"
TEST_KEYS: Final = ("sk_test_", "rk_test_")
STRIPE_CARDS: Final = {
    "visa": "pm_card_visa",
    "declined": "pm_card_chargeDeclined",
    "action": "pm_card_authenticationRequired",
}
# `hosted` is Adyen's own page, where a fan has something to do
ADYEN_CARDS: Final = {
    "visa": "test_4111111111111111",
    "declined": "test_4111111111111111/DECLINED",
    "action": "hosted",
}
# what the checkout hears; `*` has them all
STRIPE_EVENTS: Final = (
    "payment_intent.amount_capturable_updated",
    "payment_intent.succeeded",
    "payment_intent.payment_failed",
    "payment_intent.canceled",
    "charge.refunded",
    "charge.dispute.created",
    "charge.dispute.closed",
)


class ProviderExamination(Protocol):
    """A provider in its test mode."""

    @property
    def is_test(self) -> bool:
        """Whether the key moves no real money."""
        ...

    @property
    def cards(self) -> Mapping[str, str]:
        """Test cards: `visa`, `declined`, and `action`, whose bank asks the fan."""
        ...

    async def find_webhook_faults(self, url: str) -> Sequence[str]:
        """What is wrong with how this address is registered at the provider. `ProviderUnknown` if it does not say."""
        ...

    def sample_notice(self, now_us: int) -> tuple[bytes, dict[str, str]]:
        """A webhook about nothing of ours, signed as the provider signs with the secret of the settings."""
        ...

    async def find_apple_pay_fault(self, domain: str) -> str:
        """Why Apple Pay is not offered at this domain; empty if it is. `ProviderUnknown` if nobody can say."""
        ...


@runtime_checkable
class CanBeExamined(Protocol):
    """A provider of one's own that the doctor can examine."""

    def examination(self) -> ProviderExamination: ...


@runtime_checkable
class SignsBodies(Protocol):
    """An examination of a provider whose signature stands inside the body of its webhooks."""

    def forged_notice(self, now_us: int) -> bytes:
        """The sample notice with a signature that is not the provider's."""
        ...


class StripeExamination:
    """Stripe in test mode, asked directly for what the checkout never needs."""

    def __init__(
        self, key: str, webhook_secret: str, api: str = "", *, cards: Mapping[str, str] = STRIPE_CARDS
    ) -> None:
        self._key, self._secret, self._api = key, webhook_secret, api or STRIPE_API
        self.cards = cards

    @property
    def is_test(self) -> bool:
        return self._key.startswith(TEST_KEYS)

    async def find_webhook_faults(self, url: str) -> Sequence[str]:
        found = await self._list("/v1/webhook_endpoints")
        ours = [one for one in found if one.get("url") == url]
        if not ours:
            return [f"Stripe sends no webhooks to {url}; add it as an endpoint"]
        if all(one.get("status") == "disabled" for one in ours):
            return [f"Stripe's endpoint {url} is disabled"]
        heard = {event for one in ours for event in one.get("enabled_events", ())}
        missing = [] if "*" in heard else [event for event in STRIPE_EVENTS if event not in heard]
        return [f"Stripe's endpoint does not send {', '.join(missing)}"] if missing else []

    def sample_notice(self, now_us: int) -> tuple[bytes, dict[str, str]]:
        about = {"id": "pi_doctor", "object": "payment_intent", "status": "canceled"}
        event = {"id": f"evt_doctor_{now_us}", "type": "payment_intent.canceled", "data": {"object": about}}
        body = msgspec.json.encode(event)
        return body, {STRIPE_SIGNATURE: sign(body, self._secret, now_us)}

    async def find_apple_pay_fault(self, domain: str) -> str:
        found = await self._list("/v1/payment_method_domains", domain_name=domain)
        ours = next((one for one in found if one.get("domain_name") == domain), None)
        if ours is None:
            return f"{domain} is not registered at Stripe"
        apple = ours.get("apple_pay") or {}
        if apple.get("status") == "active":
            return ""
        return f"{domain}: {(apple.get('status_details') or {}).get('error_message') or apple.get('status')}"

    async def _list(self, path: str, **query: str) -> list[dict[str, Any]]:
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_S, auth=(self._key, ""), trust_env=False) as client:
                response = await client.get(f"{self._api}{path}", params={"limit": "100", **query})
            found = msgspec.json.decode(response.content)
            rows = found["data"] if response.is_success else None
        except (httpx.HTTPError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise ProviderUnknown(f"Stripe does not answer {path}: {type(error).__name__}") from error
        if not isinstance(rows, list):
            raise ProviderUnknown(f"Stripe answered {response.status_code} to {path}")
        return [one for one in rows if isinstance(one, dict)]


class AdyenExamination:
    """Adyen at its test address. What became of captures and cancels comes by webhook to a server that runs, so every
    check that waits for it also proves that Adyen knows the webhook and its HMAC key."""

    cards: Mapping[str, str] = ADYEN_CARDS

    def __init__(self, access: AdyenAccess) -> None:
        self._access = access

    @property
    def is_test(self) -> bool:
        return self._access.is_test

    async def find_webhook_faults(self, url: str) -> Sequence[str]:
        """Which webhooks are registered cannot be asked with the key of the checkout; the results of captures tell."""
        return []

    def sample_notice(self, now_us: int) -> tuple[bytes, dict[str, str]]:
        return signed_webhook(self._access.merchant_account, f"doctor{now_us}", self._access.hmac_key), {}

    def forged_notice(self, now_us: int) -> bytes:
        other = "".join("0" if digit != "0" else "1" for digit in self._access.hmac_key)
        return signed_webhook(self._access.merchant_account, f"doctor{now_us}", other)

    async def find_apple_pay_fault(self, domain: str) -> str:
        raise ProviderUnknown("Apple Pay is not offered through Adyen")


class SimulatedExamination:
    """Made-up money: there is nothing to register."""

    is_test = True
    cards: Mapping[str, str] = {"visa": "pm_card_visa", "declined": "pm_card_declined", "action": "pm_card_3ds"}

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def find_webhook_faults(self, url: str) -> Sequence[str]:
        return []

    def sample_notice(self, now_us: int) -> tuple[bytes, dict[str, str]]:
        about = {"id": "pi_doctor", "object": "payment_intent", "status": "canceled"}
        event = {"id": f"evt_doctor_{now_us // US_PER_S}", "type": "payment_intent.canceled", "data": {"object": about}}
        body = msgspec.json.encode(event)
        return body, {SIMULATED_SIGNATURE: sign(body, self._secret, now_us)}

    async def find_apple_pay_fault(self, domain: str) -> str:
        raise ProviderUnknown("the simulated provider has no Apple Pay")


def examination_of(
    provider: PaymentProvider,
    *,
    stripe_key: str = "",
    webhook_secret: str = "",
    stripe_api: str = "",
    adyen: AdyenAccess | None = None,
) -> ProviderExamination | None:
    """How this provider is examined; None if it does not say."""
    if provider.name == "stripe":
        return StripeExamination(stripe_key, webhook_secret, stripe_api)
    if provider.name == "adyen" and adyen is not None:
        return AdyenExamination(adyen)
    if isinstance(provider, SimulatedProvider):
        return cast(ProviderExamination, SimulatedExamination("whsec_simulated"))
    if isinstance(provider, CanBeExamined):
        return provider.examination()
    return None
