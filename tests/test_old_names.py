"""Somebody who upgrades notices nothing but better words: documented module names of earlier versions still import."""

import importlib
import subprocess
import sys

import pytest

from frontrow.old_names import RENAMED


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_module_name_gives_the_renamed_module(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=RENAMED[old]):
        assert importlib.import_module(old) is importlib.import_module(RENAMED[old])


def test_the_documented_imports_of_the_version_before_work() -> None:
    """As they stood in README.md and docs of 0.1."""
    code = (
        "from frontrow.bootstrap import PlatformSettings, open_platform, read_settings\n"
        "from frontrow.boxoffice.claims.memory import MemoryClaims\n"
        "from frontrow.boxoffice.ledger.opening import open_ledger\n"
        "from frontrow.boxoffice.model.attempts import ShopPass\n"
        "from frontrow.boxoffice.model.best import best_available, layouts\n"
        "from frontrow.boxoffice.model.bookings import Booking, BookingState\n"
        "from frontrow.boxoffice.model.events import Event, EventStatus, PriceTier\n"
        "from frontrow.boxoffice.model.holds import NewHold\n"
        "from frontrow.boxoffice.model.seats import Wish, masks_for\n"
        "from frontrow.boxoffice.payments.guarded import GuardedProvider\n"
        "from frontrow.boxoffice.payments.simulated import SimulatedProvider\n"
        "from frontrow.boxoffice.plans.document import plan_hash\n"
        "from frontrow.boxoffice.plans.generate import generate\n"
        "from frontrow.boxoffice.services.checkout import Checkout\n"
        "from frontrow.boxoffice.services.endpoints import Endpoints\n"
        "from frontrow.boxoffice.services.hold import HoldService\n"
        "from frontrow.boxoffice.services.recovery import Recovery\n"
        "from frontrow.boxoffice.services.refunds import Refunds\n"
        "from frontrow.boxoffice.services.sales import Sales\n"
        "from frontrow.boxoffice.tickets import qr\n"
        "from frontrow.boxoffice.tickets.bundle import make_bundle\n"
        "from frontrow.boxoffice.tickets.codes import Issuer\n"
        "from frontrow.boxoffice.tickets.door import Gate\n"
        "from frontrow.boxoffice.tickets.keys import TicketKeys\n"
        "from frontrow.client import Client, SeatsTaken, calls, staff_calls\n"
        "from frontrow.core.clock import SystemClock\n"
        "from frontrow.core.money import Money\n"
        "from frontrow.limits import Limiter, Quota, Rule, Throttled\n"
        "from frontrow.limits.http.asgi import RateLimitMiddleware\n"
        "from frontrow.limits.http.client import ClientAddress, ip_key\n"
        "from frontrow.limits.http.decorators import limited\n"
        "from frontrow.limits.http.wsgi import RateLimitMiddleware\n"
        "from frontrow.limits.rules import RequestRule, RuleBook, Tiers\n"
        "from frontrow.waitingroom.passes import PassSigner, new_key\n"
        "from frontrow.waitingroom.protect import Guard, PassKeys\n"
        "from frontrow.waitingroom.protect.asgi import PassMiddleware\n"
        "from frontrow.web.api import FromCaller, FromPlatform\n"
        "from frontrow.web.api.access import Access\n"
        "from frontrow.web.app import front_of, platform_app, run_platform\n"
        "from frontrow.web.room_serve import read_settings\n"
        "from frontrow.web.settings import ServerSettings\n"
        "from frontrow.web.site.render import render\n"
        "from frontrow.web.site.routes import FromForm, action, go_to, page\n"
    )
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], check=True)
