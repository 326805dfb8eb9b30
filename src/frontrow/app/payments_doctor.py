"""`frontrow doctor --payments`: does the payment provider do what the checkout relies on, with the operator's test key?

The provider's promises are tried out with test cards, and whatever was made there is ended again. A live key is refused
before any call. The webhook's address is called as people reach it, with a genuine and with a forged signature.
"""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import httpx

from frontrow.app.doctor import FAIL, OK, WARN, Finding
from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.adapters.payments.adyen_access import EXAMPLE
from frontrow.boxoffice.adapters.payments.examinations import ProviderExamination, SignsBodies, examination_of
from frontrow.boxoffice.adapters.payments.from_url import open_provider
from frontrow.boxoffice.payments.model.provider_intents import ProviderUnknown
from frontrow.boxoffice.payments.ports import PaymentProvider, ProviderNotes
from frontrow.boxoffice.payments.provider_checks import NOTICE_S, TestPayments, run_checks
from frontrow.core.clock import US_PER_S, Clock, SystemClock
from frontrow.core.errors import FrontrowError
from frontrow.settings.platform import PlatformSettings

WITHIN_S: Final = 300.0  # all payments of the examination together
CALL_S: Final = 10.0
LIVE_KEY: Final = "this key moves real money, so nothing was tried"


async def examine_payments(
    settings: PlatformSettings, *, test_key: str = "", currency: str = "EUR", clock: Clock | None = None
) -> list[Finding]:
    """Every finding about the provider of the settings. `test_key` is used in place of the server's key."""
    now, url = clock or SystemClock(), settings.deployment.payments_url
    if not url.startswith("adyen:"):
        return await _examine(settings, None, test_key, currency, now)
    if not settings.adyen.access.is_test:
        return [
            Finding("payments", FAIL, f"adyen: {LIVE_KEY}", f"Examine a test account, with adyen.api at {EXAMPLE}.")
        ]
    try:
        async with opened_ledger(settings.deployment.ledger_url) as ledger:  # where the server keeps Adyen's notices
            return await _examine(settings, ledger.provider_notes, test_key, currency, now)
    except FrontrowError as error:
        return [Finding("payments", FAIL, error.message)]


async def _examine(
    settings: PlatformSettings, notes: ProviderNotes | None, test_key: str, currency: str, now: Clock
) -> list[Finding]:
    stripe, adyen = settings.stripe, settings.adyen.access
    key = test_key or stripe.key
    adyen = adyen._replace(key=test_key or adyen.key)
    try:
        guarded = open_provider(
            settings.deployment.payments_url,
            now,
            stripe_key=key,
            webhook_secret=stripe.webhook_secret,
            stripe_api=stripe.api,
            public_url=settings.public_url,
            adyen=adyen,
            notes=notes,
        )
    except FrontrowError as error:
        return [Finding("payments", FAIL, error.message)]
    if guarded is None:
        return [Finding("payments", FAIL, "no payment provider is set", "Set payments.url or stripe.key.")]
    provider = guarded.inner
    try:
        about = examination_of(
            provider,
            stripe_key=key,
            webhook_secret=stripe.webhook_secret,
            stripe_api=stripe.api,
            adyen=adyen,
        )
        if about is None:
            return [Finding("payments", WARN, f"{provider.name}: the doctor knows no test cards of this provider")]
        if not about.is_test:
            do = "Give a test key with --test-key or FRONTROW_DOCTOR_KEY."
            return [Finding("payments", FAIL, f"{provider.name}: {LIVE_KEY}", do)]
        return await examine(provider, about, settings.public_url, now, currency)
    finally:
        await guarded.aclose()


async def examine(
    provider: PaymentProvider,
    about: ProviderExamination,
    public_url: str,
    clock: Clock,
    currency: str = "EUR",
    *,
    notice_s: float = NOTICE_S,
) -> list[Finding]:
    """The contract, the webhooks and Apple Pay's domain."""
    found = await _contract(provider, about, clock, currency, notice_s)
    found += await _webhooks(provider.name, about, public_url, clock)
    found.append(await _apple_pay(about, public_url))
    return found


async def _contract(
    provider: PaymentProvider, about: ProviderExamination, clock: Clock, currency: str, notice_s: float
) -> list[Finding]:
    pay = TestPayments(provider, about.cards, currency, clock() - 60 * US_PER_S, notice_s=notice_s)
    try:
        async with asyncio.timeout(WITHIN_S):
            results, left = await run_checks(pay)
    except TimeoutError:
        names = ", ".join(pay.made) or "none"
        do = "Void or refund them by hand."
        return [Finding("payments", FAIL, f"{provider.name} took longer than {WITHIN_S:.0f} s; left: {names}", do)]
    found = [
        Finding("payments", FAIL, f"{provider.name}: {one.name}: {one.difference}")
        if one.difference
        else Finding("payments", OK, f"{provider.name}: {one.name}")
        for one in results
    ]
    for one in left:
        found.append(Finding("payments", WARN, f"could not be ended: {one}", "Void or refund it by hand."))
    return found


async def _webhooks(name: str, about: ProviderExamination, public_url: str, clock: Clock) -> list[Finding]:
    url = f"{public_url.rstrip('/')}/v1/webhooks/{name}"
    found = []
    try:
        faults = await about.find_webhook_faults(url)
        found += [Finding("webhooks", FAIL, one, "Register it in the provider's dashboard.") for one in faults]
    except ProviderUnknown as error:
        found.append(Finding("webhooks", WARN, error.message))
    body, headers = about.sample_notice(clock())
    answers = []
    forged = body, {key: value[:-4] + "0000" for key, value in headers.items()}
    if isinstance(about, SignsBodies):
        forged = about.forged_notice(clock()), headers
    for content, given in ((body, headers), forged):
        try:
            async with httpx.AsyncClient(timeout=CALL_S, trust_env=False) as client:
                sent = {**given, "content-type": "application/json"}
                answers.append((await client.post(url, content=content, headers=sent)).status_code)
        except httpx.HTTPError as error:
            do = "Is the server running, and does server.public_url lead to it from the Internet?"
            return [*found, Finding("webhooks", FAIL, f"{url} does not answer: {type(error).__name__}", do)]
    genuine, answer_to_forged = answers
    if answer_to_forged < 400:
        found.append(Finding("webhooks", FAIL, f"{url} took a forged webhook", "Is it a Frontrow server?"))
    elif genuine == 401:
        do = "Set the webhook secret of this endpoint, and restart the servers."
        found.append(Finding("webhooks", FAIL, f"{url} has another webhook secret than these settings", do))
    elif genuine != 200:
        found.append(Finding("webhooks", FAIL, f"{url} answered {genuine} to a genuine webhook"))
    else:
        found.append(Finding("webhooks", OK, f"{url} takes what is signed with this secret, and nothing else"))
    return found


async def _apple_pay(about: ProviderExamination, public_url: str) -> Finding:
    domain = urlsplit(public_url).hostname or ""
    try:
        fault = await about.find_apple_pay_fault(domain)
    except ProviderUnknown as error:
        return Finding("apple pay", OK, f"not looked at: {error.message}")
    if fault:
        return Finding("apple pay", WARN, fault, "Register the domain; until then fans see no Apple Pay.")
    return Finding("apple pay", OK, f"{domain} is registered")
