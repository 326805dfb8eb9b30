"""Opens a payment provider by URL: `simulated:PATH` (a journal file) or `stripe:` (its key is a secret of its own)."""

from pathlib import Path

from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.ports.payments import PaymentProvider
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError


def open_provider(
    url: str, clock: Clock, *, stripe_key: str = "", webhook_secret: str = "", stripe_api: str = ""
) -> GuardedProvider | None:
    """The provider behind its breaker, or None when there is neither a URL nor a key."""
    scheme, _, rest = url.partition(":")
    if not url and not stripe_key:
        return None
    if scheme == "simulated":
        if not rest:
            raise ConfigError("simulated: needs a file, like simulated:payments.jsonl", param="payments")
        from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
        from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal

        return GuardedProvider(SimulatedProvider(clock, journal=PaymentJournal(Path(rest))), clock)
    if scheme not in ("", "stripe"):
        raise ConfigError(f"payments {url!r} must be simulated:FILE or stripe:", param="payments")
    return GuardedProvider(_stripe(stripe_key, webhook_secret, stripe_api), clock)


def _stripe(key: str, webhook_secret: str, api: str) -> PaymentProvider:
    try:
        from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
    except ImportError:
        raise ConfigError("Stripe needs its client: pip install 'frontrow[payments]'", param="payments") from None
    return StripeProvider(key, webhook_secret, api_base=api)
