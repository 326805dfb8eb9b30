"""Accounts of organisers at Stripe (Connect): open one, lead its owner through the onboarding, see how it stands.

The charge is made on the organiser's account (a direct charge), with the platform's fee as its application fee. Stripe
pays out from there to the organiser's bank. The platform keeps its fee when a payment is refunded, as Stripe does.
"""

from typing import Any, Final

import stripe

from frontrow.boxoffice.payments.ports import AccountLook, ProviderPayout
from frontrow.core.clock import US_PER_S

MAX_REASONS: Final = 5


async def open_account(client: stripe.StripeClient, organiser_id: str, key: str) -> str:
    """A new account, whose owner has a full dashboard of Stripe and is asked for everything by Stripe."""
    params: Any = {"type": "standard", "metadata": {"organiser": organiser_id}}
    return (await client.v1.accounts.create_async(params, {"idempotency_key": key})).id


async def onboarding_url(client: stripe.StripeClient, account: str, return_url: str) -> str:
    params: Any = {"account": account, "type": "account_onboarding"}
    params |= {"return_url": return_url, "refresh_url": return_url}
    return (await client.v1.account_links.create_async(params)).url


async def look(client: stripe.StripeClient, account: str) -> AccountLook:
    found = (await client.v1.accounts.retrieve_async(account)).to_dict()
    missing = found.get("requirements") or {}
    why = missing.get("disabled_reason") or ", ".join((missing.get("currently_due") or [])[:MAX_REASONS])
    return AccountLook(ready=bool(found.get("charges_enabled")), reason=str(why or ""))


async def payouts(client: stripe.StripeClient, account: str, limit: int) -> list[ProviderPayout]:
    found = await client.v1.payouts.list_async({"limit": limit}, {"stripe_account": account})
    return [
        ProviderPayout(one.id, one.amount, one.currency.upper(), int(one.arrival_date) * US_PER_S, one.status == "paid")
        for one in found.data
    ]
