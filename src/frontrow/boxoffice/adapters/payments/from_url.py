"""Opens a payment provider by URL.

`simulated:PATH` is a journal file, `stripe:` is Stripe (its key is a secret of its own), `python:MODULE:FUNCTION` is a
provider of your own: the function takes the clock and the address that people know the server by, and returns it.
"""

import importlib
from pathlib import Path
from typing import Any, Final, cast

from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.payments.ports import PaymentProvider
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError

PORT: Final = ("name", "create", "authorise", "capture", "void", "refund", "read", "page", "notice", "aclose")
OUR_NAMES: Final = ("stripe", "simulated")


def open_provider(
    url: str,
    clock: Clock,
    *,
    stripe_key: str = "",
    webhook_secret: str = "",
    stripe_api: str = "",
    public_url: str = "",
    cap: CallCap | None = None,
) -> GuardedProvider | None:
    """The provider behind its breaker and its cap, or None when there is neither a URL nor a key."""
    scheme, _, rest = url.partition(":")
    if not url and not stripe_key:
        return None
    if scheme == "simulated":
        return GuardedProvider(_simulated(rest, clock), clock, cap=cap)
    if scheme == "python":
        return GuardedProvider(_own(rest, clock, public_url), clock, cap=cap)
    if scheme not in ("", "stripe"):
        raise ConfigError(
            f"payments {url!r} must be simulated:FILE, stripe: or python:MODULE:FUNCTION", param="payments"
        )
    return GuardedProvider(_stripe(stripe_key, webhook_secret, stripe_api), clock, cap=cap)


def _simulated(path: str, clock: Clock) -> PaymentProvider:
    if not path:
        raise ConfigError("simulated: needs a file, like simulated:payments.jsonl", param="payments")
    from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
    from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal

    return SimulatedProvider(clock, webhooks=False, journal=PaymentJournal(Path(path)))


def _own(place: str, clock: Clock, public_url: str) -> PaymentProvider:
    """What the function at `module:function` returns. A mistake is told in one sentence."""
    where, (module, _, function) = f"python:{place}", place.partition(":")
    if not module or not function:
        raise ConfigError(f"{where} must be python:MODULE:FUNCTION", param="payments")
    try:
        make: Any = getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise ConfigError(
            f"{where} cannot be imported: {error}; is its folder on PYTHONPATH?", param="payments"
        ) from None
    except AttributeError:
        raise ConfigError(f"{where}: {module} has no {function}", param="payments") from None
    provider = make(clock, public_url)
    missing = [name for name in PORT if not hasattr(provider, name)]
    if missing:
        raise ConfigError(f"{where} returns a provider without {', '.join(missing)}", param="payments")
    if provider.name in OUR_NAMES:
        raise ConfigError(f"{where}: the name {provider.name!r} is taken; give your provider another", param="payments")
    return cast(PaymentProvider, provider)


def _stripe(key: str, webhook_secret: str, api: str) -> PaymentProvider:
    try:
        from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
    except ImportError:
        raise ConfigError("Stripe needs its client: pip install 'frontrow[payments]'", param="payments") from None
    return StripeProvider(key, webhook_secret, api_base=api)
