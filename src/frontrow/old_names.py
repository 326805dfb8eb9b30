"""Old module names still import, with a DeprecationWarning. They go away in version 0.3.

Modules were renamed and moved in 0.2 (see CHANGELOG.md). This table lists the documented ones. The finder stands at the
end of `sys.meta_path`, so it is asked only for names that no file answers to.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

RENAMED = {
    "frontrow.bootstrap": "frontrow.app.wiring",
    "frontrow.boxoffice.claims.memory": "frontrow.boxoffice.adapters.claims.memory",
    "frontrow.boxoffice.claims.redis": "frontrow.boxoffice.adapters.claims.redis",
    "frontrow.boxoffice.ledger.migrate": "frontrow.boxoffice.adapters.ledger.migrate",
    "frontrow.boxoffice.ledger.opening": "frontrow.boxoffice.adapters.ledger.from_url",
    "frontrow.boxoffice.model.attempts": "frontrow.boxoffice.model.hold_values",
    "frontrow.boxoffice.model.best": "frontrow.boxoffice.model.best_seats",
    "frontrow.boxoffice.payments.guarded": "frontrow.boxoffice.adapters.payments.guarded_provider",
    "frontrow.boxoffice.payments.simulated": "frontrow.boxoffice.adapters.payments.simulated",
    "frontrow.boxoffice.payments.stripe": "frontrow.boxoffice.adapters.payments.stripe",
    "frontrow.boxoffice.plans.document": "frontrow.boxoffice.plans.plan_document",
    "frontrow.boxoffice.plans.generate": "frontrow.boxoffice.plans.plan_generator",
    "frontrow.boxoffice.services.checkout": "frontrow.boxoffice.checkout.checkout",
    "frontrow.boxoffice.services.endpoints": "frontrow.boxoffice.messaging.webhook_endpoints",
    "frontrow.boxoffice.services.hold": "frontrow.boxoffice.holds.hold_service",
    "frontrow.boxoffice.services.recovery": "frontrow.boxoffice.holds.claim_recovery",
    "frontrow.boxoffice.services.refunds": "frontrow.boxoffice.refunds.refunds",
    "frontrow.boxoffice.services.sales": "frontrow.boxoffice.holds.events_on_sale",
    "frontrow.boxoffice.tickets.bundle": "frontrow.boxoffice.tickets.door_bundle",
    "frontrow.boxoffice.tickets.codes": "frontrow.boxoffice.tickets.ticket_codes",
    "frontrow.boxoffice.tickets.door": "frontrow.boxoffice.tickets.door_check",
    "frontrow.boxoffice.tickets.keys": "frontrow.boxoffice.tickets.signing_keys",
    "frontrow.boxoffice.tickets.qr": "frontrow.boxoffice.tickets.qr_code",
    "frontrow.core.settings": "frontrow.core.settings_loader",
    "frontrow.waitingroom.passes": "frontrow.waitingroom.credentials.passes",
    "frontrow.web.room_serve": "frontrow.web.room.server",
    "frontrow.web.settings": "frontrow.settings.platform",
}
_GONE_PACKAGES = frozenset(
    f"frontrow.boxoffice.{name}" for name in ("claims", "ledger", "payments", "services")
)  # found only as parents of the names above


class OldNames(MetaPathFinder, Loader):
    """Finds a renamed module under its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in RENAMED:
            return ModuleSpec(fullname, self)
        if fullname in _GONE_PACKAGES:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name in RENAMED:
            new = RENAMED[name]
            warnings.warn(f"{name} is now {new}; the old name goes away in 0.3", DeprecationWarning, stacklevel=2)
            sys.modules[name] = importlib.import_module(new)  # the import system returns what stands here afterwards
        else:
            module.__doc__ = "A package of an earlier version. See frontrow.old_names."


def install() -> None:
    """Make old names importable; repeating it changes nothing."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.append(OldNames())
