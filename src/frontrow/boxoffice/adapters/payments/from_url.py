"""Opens a payment provider by URL.

`simulated:PATH` is a journal file, `stripe:` is Stripe and `adyen:` is Adyen (their keys are secrets of their own),
`python:MODULE:FUNCTION` is a provider of your own: the function takes the clock and the address that people know the
server by, and returns it.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.payments.model.payment_methods import PaymentMethod
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.ports import PaymentProvider, ProviderNotes
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError

PORT: Final = (
    "name",
    "methods",
    "create",
    "authorise",
    "capture",
    "void",
    "refund",
    "read",
    "page",
    "notice",
    "aclose",
)
OUR_NAMES: Final = ("stripe", "adyen", "simulated")
STRIPE_USUALLY: Final = ("card", "apple_pay", "google_pay")  # what every account has
ADYEN_USUALLY: Final = ("card",)
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")  # it is part of an address: /v1/webhooks/NAME


def open_provider(
    url: str,
    clock: Clock,
    *,
    stripe_key: str = "",
    webhook_secret: str = "",
    connect_secret: str = "",
    stripe_api: str = "",
    public_url: str = "",
    methods: Sequence[str] = (),
    adyen: AdyenAccess | None = None,
    notes: ProviderNotes | None = None,
    cap: CallCap | None = None,
) -> GuardedProvider | None:
    """The provider behind its breaker and its cap, or None when there is neither a URL nor a key.

    `methods` are the ids of the methods that fans are offered, in this order; none: the usual ones.
    """
    scheme, _, rest = url.partition(":")
    if not url and not stripe_key:
        return None
    if scheme == "simulated":
        return _guarded(_simulated(rest, methods, clock), methods, clock, cap)
    if scheme == "python":
        return _guarded(_own(rest, clock, public_url), methods, clock, cap)
    if scheme == "adyen":
        return _guarded(_adyen(adyen or AdyenAccess(), notes, clock), methods or ADYEN_USUALLY, clock, cap)
    if scheme not in ("", "stripe"):
        raise ConfigError(
            f"payments {url!r} must be simulated:FILE, stripe:, adyen: or python:MODULE:FUNCTION", param="payments"
        )
    return _guarded(
        _stripe(stripe_key, webhook_secret, connect_secret, stripe_api), methods or STRIPE_USUALLY, clock, cap
    )


def open_providers(
    url: str,
    also: Sequence[str],
    clock: Clock,
    *,
    cap: Callable[[], CallCap] | None = None,
    methods: Sequence[str] = (),
    **given: Any,
) -> OpenProviders | None:
    """The provider at `url`, which takes new payments, and the others at `also`, which finish those they began."""
    default = open_provider(url, clock, cap=cap() if cap else None, methods=methods, **given)
    if default is None:
        return None
    others = [open_provider(one, clock, cap=cap() if cap else None, **given) for one in also]
    return OpenProviders(default, *(one for one in others if one is not None))


def _guarded(provider: PaymentProvider, methods: Sequence[str], clock: Clock, cap: CallCap | None) -> GuardedProvider:
    """The provider behind its breaker and its cap, with these of its methods."""
    chosen = _choose(provider.name, provider.methods, methods)
    return GuardedProvider(provider, clock, cap=cap, methods=chosen or None)


def _choose(name: str, has: Sequence[PaymentMethod], methods: Sequence[str]) -> list[PaymentMethod]:
    """These methods of the provider with this name."""
    known = {method.id: method for method in has}
    unknown = next((one for one in methods if one not in known), None)
    if unknown is not None:
        raise ConfigError(
            f"the payment provider {name!r} has no method {unknown!r}; it has {', '.join(known)}",
            param="payments.methods",
        )
    if len(set(methods)) < len(methods):
        raise ConfigError("payments.methods names a method twice", param="payments.methods")
    return [known[one] for one in methods]


def _simulated(path: str, methods: Sequence[str], clock: Clock) -> PaymentProvider:
    if not path:
        raise ConfigError("simulated: needs a file, like simulated:payments.jsonl", param="payments")
    from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
    from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal

    _choose(SimulatedProvider.name, SimulatedProvider.methods, methods)  # refused before the file is open
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
    if not NAME.fullmatch(provider.name):
        raise ConfigError(
            f"{where}: the name {provider.name!r} must be small letters, digits and dashes", param="payments"
        )
    if provider.name in OUR_NAMES:
        raise ConfigError(f"{where}: the name {provider.name!r} is taken; give your provider another", param="payments")
    return cast(PaymentProvider, provider)


def _stripe(key: str, webhook_secret: str, connect_secret: str, api: str) -> PaymentProvider:
    try:
        from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
    except ImportError:
        raise ConfigError("Stripe needs its client: pip install 'frontrow[payments]'", param="payments") from None
    return StripeProvider(key, webhook_secret, connect_secret=connect_secret, api_base=api)


def _adyen(access: AdyenAccess, notes: ProviderNotes | None, clock: Clock) -> PaymentProvider:
    access.check()
    if notes is None:
        raise ConfigError("adyen: needs the ledger, where what Adyen says is kept", param="payments")
    try:
        from frontrow.boxoffice.adapters.payments.adyen import AdyenProvider
    except ImportError:
        raise ConfigError("Adyen needs an HTTP client: pip install 'frontrow[payments]'", param="payments") from None
    return AdyenProvider(access, notes, clock)
