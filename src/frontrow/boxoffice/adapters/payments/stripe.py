"""Stripe through its official client: PaymentIntents with all methods, refunds, signed webhooks, Apple Pay's domain.

Money is reserved first by every method that can (cards, wallets, Link, PayPal, Klarna). Where others are offered beside
them, the capture is set per method. A bank transfer needs a customer of Stripe's, who is made for the one payment.

Every POST carries our idempotency key. The client's own retries are off, because the services decide. A 5xx or no
answer is an unknown outcome, a 429 or a refused key means that nothing was done, and any other 4xx is a definite no. A
declined card is read from the object, not from the error. This code has never run against live Stripe: docs/payments.md
says what it was tested against.
"""

import copy
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import httpx
import stripe

from frontrow.boxoffice.adapters.payments import stripe_accounts
from frontrow.boxoffice.adapters.payments.stripe_methods import DOMAIN_METHODS, METHODS, options_of, types_of
from frontrow.boxoffice.adapters.payments.stripe_objects import intent_of, refund_of
from frontrow.boxoffice.adapters.payments.webhook_notices import read_notice, signature_of
from frontrow.boxoffice.payments.model.payment_methods import PaymentMethod, find_method
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
from frontrow.boxoffice.payments.ports import AccountLook, PaymentProvider, ProviderPayout
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, Unauthorised
from frontrow.shared.webhook_signature import check_signature

Answer = TypeVar("Answer")
TIMEOUT_S: Final = 20.0
CONNECTIONS: Final = 5_000
MAX_PAGE: Final = 100
MAX_REFUNDS: Final = 100
SIGNATURE: Final = "stripe-signature"


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
    methods: Sequence[PaymentMethod] = METHODS

    def __init__(
        self,
        secret_key: str,
        webhook_secret: str = "",
        *,
        connect_secret: str = "",
        api_base: str = "",
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        if not secret_key:
            raise ConfigError("the stripe provider needs a secret key", param="stripe_key")
        self._webhook_secret, self._connect_secret = webhook_secret, connect_secret
        self._http = _Http(timeout_s)
        self._key, self._api_base = secret_key, api_base
        self._others: dict[str, StripeProvider] = {}  # by account
        self._open("")

    def _open(self, account: str) -> None:
        """Make every call for this account; "" is the platform's own."""
        self._account = account
        more: dict[str, Any] = {"base_addresses": {"api": self._api_base}} if self._api_base else {}
        more |= {"stripe_account": account} if account else {}
        self._client = stripe.StripeClient(self._key, http_client=self._http, max_network_retries=0, **more)
        self._intents = self._client.v1.payment_intents
        self._refunds = self._client.v1.refunds

    def for_account(self, account: str) -> PaymentProvider:
        """The same for the connected account of an organiser, over the same connections."""
        if account not in self._others:
            other = copy.copy(self)
            other._open(account)
            self._others[account] = other
        return self._others[account]

    async def create(self, new: NewIntent) -> Intent:
        chosen = find_method(METHODS, new.method)
        offered = (new.method,) if chosen is not None else new.methods or ("card",)
        types = types_of(offered)
        _check_price(offered, new)
        params: Any = {
            "amount": new.amount_minor,
            "currency": new.currency.lower(),
            "payment_method_types": types,
            "metadata": new.metadata(),
        }
        if types == ["card"]:
            params["capture_method"] = "manual"
        else:
            params["payment_method_options"] = options_of(types)
        if self._account and new.fee_minor:
            params["application_fee_amount"] = new.fee_minor
        if "customer_balance" in types:
            params["customer"] = await self._customer(new)
        if new.method:
            params |= _paid_with(chosen, new.method, new.return_url) | {"confirm": True}
        try:
            return intent_of(_plain(await _call(self._intents.create_async(params, {"idempotency_key": new.key}))))
        except _Declined as declined:  # the object was created and may be tried with another card
            if not declined.ref:
                raise ProviderUnknown("Stripe declined a card without naming the payment", answered=True) from declined
            return await self.read(declined.ref)

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        params: Any = _paid_with(find_method(METHODS, method), method, return_url)
        try:
            found = await _call(self._intents.confirm_async(ref, params, {"idempotency_key": key}))
        except _Declined:
            return await self.read(ref)
        return intent_of(_plain(found))

    async def _customer(self, new: NewIntent) -> str:
        """Bank transfers are credited to a customer: one per payment, so that no balance is left for another one."""
        params: Any = {"metadata": {"booking": new.booking_id}}
        return (
            await _call(self._client.v1.customers.create_async(params, {"idempotency_key": f"{new.key}:customer"}))
        ).id

    async def add_domain(self, domain: str) -> dict[str, str]:
        """Register the shop's domain, which Apple Pay and Google Pay ask for. What each wallet says: `active`, or why
        not. Safe to repeat."""
        domains, params = self._client.v1.payment_method_domains, cast(Any, {"domain_name": domain})
        found = _plain(await _call(domains.create_async(params)))
        if any((found.get(one) or {}).get("status") == "inactive" for one in DOMAIN_METHODS):
            found = _plain(await _call(domains.validate_async(found["id"])))  # it looks at the domain again
        return {one: _domain_status(found[one]) for one in DOMAIN_METHODS if found.get(one)}

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
        params: Any = {"expand": ["payment_method"]}  # it says what the fan chose
        return await self._with_refunds(_plain(await _call(self._intents.retrieve_async(ref, params))))

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

    def notice(self, body: bytes, headers: Mapping[str, str], now_us: int) -> Notice | None:
        signature = signature_of(headers, SIGNATURE)
        try:
            check_signature(body, signature, self._webhook_secret, now_us)
        except Unauthorised:
            if not self._connect_secret:
                raise
            check_signature(body, signature, self._connect_secret, now_us)  # about an organiser's account
        return read_notice(body)

    async def open_account(self, organiser_id: str, key: str) -> str:
        return await _call(stripe_accounts.open_account(self._client, organiser_id, key))

    async def onboarding_url(self, account: str, return_url: str) -> str:
        return await _call(stripe_accounts.onboarding_url(self._client, account, return_url))

    async def look(self, account: str) -> AccountLook:
        """An account that Stripe shows to us no more is closed for us."""
        try:
            return await stripe_accounts.look(self._client, account)
        except stripe.PermissionError as error:
            return AccountLook(ready=False, closed=True, reason=str(error.user_message or error))
        except stripe.StripeError as error:
            raise ProviderUnknown(f"Stripe did not say how {account} stands: {error}") from error

    async def payouts(self, account: str, limit: int) -> list[ProviderPayout]:
        return await _call(stripe_accounts.payouts(self._client, account, limit))

    async def aclose(self) -> None:
        await self._http.close_async()  # type: ignore[no-untyped-call]


def _paid_with(chosen: PaymentMethod | None, method: str, return_url: str) -> dict[str, Any]:
    """What confirms a payment with a card that Stripe's form has stored, or begins one with another method."""
    if chosen is None:
        return {"payment_method": method}
    kind = types_of((chosen.id,))[0]
    params: dict[str, Any] = {"return_url": return_url} if return_url else {}
    return params | {"payment_method_data": {"type": kind}, "payment_method_options": options_of([kind])}


def _check_price(offered: Sequence[str], new: NewIntent) -> None:
    """Refuse an amount or a currency that none of the offered methods takes, before Stripe says so of the first one."""
    methods = [one for one in METHODS if one.id in offered]
    if not any(one.takes(new.amount_minor, new.currency) for one in methods):
        names = ", ".join(one.name for one in methods)
        raise ProviderRefused(
            f"{names} cannot take {new.amount_minor} {new.currency} at Stripe", "amount_not_supported"
        )


def _domain_status(found: dict[str, Any]) -> str:
    why = (found.get("status_details") or {}).get("error_message") or ""
    return f"{found['status']}: {why}" if why else str(found["status"])


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
    except stripe.AuthenticationError as error:  # nothing was done, and no fan's seats depend on our key
        raise ProviderNotCalled(
            f"Stripe refuses the secret key; check stripe.key: {error.user_message or error}"
        ) from error
    except stripe.PermissionError as error:  # such as an account that was taken away from us: tried again later
        raise ProviderNotCalled(f"Stripe refuses our key for this account: {error.user_message or error}") from error
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
