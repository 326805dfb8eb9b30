"""Stripe through its official client: PaymentIntents with manual capture, refunds, signed webhooks.

Every POST carries our idempotency key. The client's own retries are off, because the services decide. A 5xx or no
answer is an unknown outcome, a 429 means that nothing was done, and any other 4xx is a definite no. A declined card is
read from the object, not from the error. This code has never run against live Stripe: docs/payments.md says what it was
tested against.
"""

from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import httpx
import stripe

from frontrow.boxoffice.adapters.payments.stripe_objects import intent_of, refund_of
from frontrow.boxoffice.adapters.payments.webhook_notices import read_notice
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    Notice,
    ProviderNotCalled,
    ProviderRefund,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError
from frontrow.shared.webhook_signature import check_signature

Answer = TypeVar("Answer")
TIMEOUT_S: Final = 20.0
CONNECTIONS: Final = 5_000
MAX_PAGE: Final = 100
MAX_REFUNDS: Final = 100


class _Http(stripe.HTTPXClient):
    """The client's own transport opens at most 100 connections; we may have 5,000 calls in flight (N3)."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(timeout=timeout_s)
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=200)
        self._client_async = httpx.AsyncClient(limits=limits)

    def _get_request_args_kwargs(self, method: str, url: str, headers: Any, post_data: Any) -> Any:
        args, more = super()._get_request_args_kwargs(method, url, headers, post_data)
        body = more.pop("data")  # httpx wants raw bodies under another name
        return args, more | ({"content": body} if body else {})


class StripeProvider:
    """See PaymentProvider."""

    name = "stripe"

    def __init__(
        self, secret_key: str, webhook_secret: str = "", *, api_base: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        if not secret_key:
            raise ConfigError("the stripe provider needs a secret key", param="stripe_key")
        self._webhook_secret = webhook_secret
        self._http = _Http(timeout_s)
        more: dict[str, Any] = {"base_addresses": {"api": api_base}} if api_base else {}
        self._client = stripe.StripeClient(secret_key, http_client=self._http, max_network_retries=0, **more)
        self._intents = self._client.v1.payment_intents
        self._refunds = self._client.v1.refunds

    async def create(self, new: NewIntent) -> Intent:
        params: Any = {
            "amount": new.amount_minor,
            "currency": new.currency.lower(),
            "capture_method": "manual",
            "payment_method_types": ["card"],
            "metadata": new.metadata(),
        }
        if new.method:
            params |= {"payment_method": new.method, "confirm": True}
        try:
            return intent_of(_plain(await _call(self._intents.create_async(params, {"idempotency_key": new.key}))))
        except _Declined as declined:  # the object was created and may be tried with another card
            if not declined.ref:
                raise ProviderUnknown("Stripe declined a card without naming the payment", answered=True) from declined
            return await self.read(declined.ref)

    async def authorise(self, ref: str, method: str, key: str) -> Intent:
        params: Any = {"payment_method": method}
        try:
            found = await _call(self._intents.confirm_async(ref, params, {"idempotency_key": key}))
        except _Declined:
            return await self.read(ref)
        return intent_of(_plain(found))

    async def capture(self, ref: str, key: str) -> Intent:
        return intent_of(_plain(await _call(self._intents.capture_async(ref, {}, {"idempotency_key": key}))))

    async def void(self, ref: str, key: str) -> Intent:
        try:
            return intent_of(_plain(await _call(self._intents.cancel_async(ref, {}, {"idempotency_key": key}))))
        except ProviderRefused:
            intent = await self.read(ref)
            if intent.state is IntentState.VOID:
                return intent
            raise

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        params: Any = {"payment_intent": ref, "amount": amount_minor, "metadata": {"refund": refund_id}}
        return refund_of(_plain(await _call(self._refunds.create_async(params, {"idempotency_key": key}))))

    async def read(self, ref: str) -> Intent:
        return await self._with_refunds(_plain(await _call(self._intents.retrieve_async(ref))))

    async def page(self, since_us: int, after: str = "", limit: int = MAX_PAGE) -> list[Intent]:
        params: Any = {"created": {"gte": since_us // US_PER_S}, "limit": min(limit, MAX_PAGE)}
        if after:
            params["starting_after"] = after
        found = await _call(self._intents.list_async(params))
        return [await self._with_refunds(_plain(one)) for one in found.data]

    async def _with_refunds(self, found: dict[str, Any]) -> Intent:
        if found["status"] != "succeeded":
            return intent_of(found)
        refunds = await _call(self._refunds.list_async({"payment_intent": found["id"], "limit": MAX_REFUNDS}))
        return intent_of(found, [_plain(refund) for refund in refunds.data])

    def notice(self, body: bytes, signature: str, now_us: int) -> Notice | None:
        check_signature(body, signature, self._webhook_secret, now_us)
        return read_notice(body)

    async def aclose(self) -> None:
        await self._http.close_async()  # type: ignore[no-untyped-call]


class _Declined(ProviderRefused):
    """The card was declined. The object (`ref`) says why."""

    def __init__(self, message: str, reason: str, ref: str) -> None:
        super().__init__(message, reason)
        self.ref = ref


async def _call(request: Awaitable[Answer]) -> Answer:
    """The answer of Stripe, with its errors turned into ours."""
    try:
        return await request
    except stripe.CardError as error:
        body: Any = error.json_body or {}
        about = body.get("error", {}).get("payment_intent") or {}
        message = f"Stripe: {error.user_message or error}"
        raise _Declined(message, error.code or "card_declined", about.get("id", "")) from error
    except stripe.RateLimitError as error:
        raise ProviderNotCalled(f"Stripe: {error.user_message or 'too many requests'}") from error
    except stripe.APIConnectionError as error:
        raise ProviderUnknown(f"Stripe did not answer: {error}") from error
    except stripe.StripeError as error:
        status = error.http_status or 500
        if status == 409:  # another call with this key is still running
            raise ProviderUnknown(f"Stripe: {error}") from error
        if status >= 500:
            raise ProviderUnknown(f"Stripe: {status}", answered=True) from error
        raise ProviderRefused(f"Stripe: {error.user_message or error}", error.code or f"http_{status}") from error


def _plain(found: Any) -> dict[str, Any]:
    """A Stripe object as a plain dictionary."""
    plain: dict[str, Any] = found.to_dict()
    return plain
