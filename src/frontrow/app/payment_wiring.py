"""Which payment providers a platform uses, from its settings."""

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.from_url import open_providers
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.core.clock import Clock
from frontrow.core.settings_loader import named
from frontrow.settings.platform import PlatformSettings


def platform_providers(settings: PlatformSettings, ledger: SqlLedger, clock: Clock) -> OpenProviders:
    stripe, payments = settings.stripe, settings.payments
    with named("payments.url"):
        providers = open_providers(
            settings.deployment.payments_url,
            payments.also,
            clock,
            stripe_key=stripe.key,
            webhook_secret=stripe.webhook_secret,
            connect_secret=stripe.connect_secret,
            stripe_api=stripe.api,
            public_url=settings.public_url,
            methods=payments.methods,
            adyen=settings.adyen.access,
            notes=ledger.provider_notes,
            cap=lambda: CallCap(payments.max_in_flight, settings.redis.url or "memory://"),
        )
    assert providers is not None
    return providers
