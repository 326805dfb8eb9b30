"""The running shop of a journey: one server (or more) on embedded or clustered stores, its mails and its money.

Time is real, and a journey may let it pass at once with `stack.let_pass(seconds)`.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.settings.platform import MailSettings, StripeSettings
from tests.browser.served import WAIT_S, Site
from tests.journeys.mailbox import Mailbox, SmtpServer, folder_mailbox
from tests.support.eventually import eventually
from tests.support.localstripe import PUBLISHABLE_KEY, SECRET_KEY, WEBHOOK_SECRET, LocalStripe
from tests.web.api.support import one_row, put_event


@dataclass
class Stack:
    """What a journey needs of the shop. `form` is "embedded" or "clustered"."""

    form: str
    site: Site
    mailbox: Mailbox
    stripe: LocalStripe | None = None
    options: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    _opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _events: dict[str, Event] = field(default_factory=dict)
    _others: list[Site] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.site.url

    @property
    def platform(self) -> Platform:
        return self.site.platform

    def call(self, work: Any) -> Any:
        """Run `async def work(platform)` inside the server."""
        return self.site.call(work)

    def let_pass(self, seconds: float) -> None:
        """Time passes at once, on every server."""
        for site in (self.site, *self._others):
            site.ahead_s += seconds  # type: ignore[assignment]

    def put_on_sale(self, name: str, plan: Plan | None = None, *, seats: int = 4, **changes: Any) -> Event:
        """An event on sale with a hall of one row (or `plan`); returns when this server sells it."""
        given = {"id": f"evt_journey_{len(self._events) + 1:04}", "name": name} | changes
        event: Event = self.call(lambda platform: put_event(platform, plan or one_row(seats), **given))
        self.call(lambda platform: _opened(platform, event.id))
        self._events[name] = event
        return event

    def event_id(self, name: str) -> str:
        """The id of an event that was put on sale here."""
        return self._events[name].id

    def event_url(self, name: str) -> str:
        """The address of an event that was put on sale here, as a friend sends it."""
        return f"{self.url}/events/{self._events[name].id}"

    def add_server(self) -> Site:
        """Another server on the same stores; clustered only."""
        assert self.form == "clustered", "an embedded shop has one server"
        other = Site(self.folder / f"server{len(self._others) + 2}", _nothing, **self.options)
        other.ahead_s = self.site.ahead_s
        self._opened.enter_context(other)
        self._others.append(other)
        return other

    def book(self) -> list[Intent]:
        """The provider's own book of payments, with captures and refunds."""
        found: list[Intent] = self.call(lambda platform: platform.box_office.provider.page(0))
        return found

    def paid(self, booking_id: str) -> int:
        """What the provider took for a booking and has not given back, in cents. Waits for a capture under way."""
        self.call(lambda platform: _captured(platform, booking_id))
        ours = [intent for intent in self.book() if intent.booking_id == booking_id]
        return sum(intent.captured_minor - intent.refunded_minor for intent in ours)

    def authorised(self, booking_id: str) -> int:
        """How many authorisations the provider still holds for a booking, neither captured nor voided."""
        return sum(i.booking_id == booking_id and i.state is IntentState.AUTHORISED for i in self.book())


async def _captured(platform: Platform, booking_id: str) -> None:
    """The sale is the pivot, the capture follows it: wait while a sold booking's money is only authorised."""

    async def is_authorised() -> bool:
        book = await platform.box_office.provider.page(0)
        if not any(one.booking_id == booking_id and one.state is IntentState.AUTHORISED for one in book):
            return False
        return (await platform.ledger.booking(booking_id)).state == "confirmed"

    await eventually(is_authorised, until=lambda authorised: not authorised)


async def _nothing(platform: Platform) -> None: ...


async def _opened(platform: Platform, event_id: str) -> None:
    await eventually(lambda: event_id in platform.box_office.openings.events, WAIT_S)


@contextlib.contextmanager
def embedded(folder: Path, *, stripe: LocalStripe | None = None, **options: Any) -> Iterator[Stack]:
    """One process with everything inside."""
    given = options | _stripe_section(stripe)
    with contextlib.ExitStack() as opened:
        site = opened.enter_context(Site(folder, _nothing, **given))
        yield _stack("embedded", site, folder_mailbox(folder / "outbox"), stripe, given, folder, opened)


@contextlib.contextmanager
def clustered(
    folder: Path, redis_url: str, postgres_url: str, *, stripe: LocalStripe | None = None, **options: Any
) -> Iterator[Stack]:
    """On Redis, PostgreSQL and a real mail server."""
    smtp = SmtpServer()
    smtp.start()
    with contextlib.ExitStack() as opened:
        opened.callback(smtp.stop)
        stores = {"redis_url": redis_url, "postgres_url": postgres_url, "mail": MailSettings(smtp.url)}
        given = stores | options | _stripe_section(stripe)
        site = opened.enter_context(Site(folder, _nothing, **given))
        yield _stack("clustered", site, smtp.mailbox(), stripe, given, folder, opened)


def _stack(
    form: str,
    site: Site,
    mailbox: Mailbox,
    stripe: LocalStripe | None,
    options: dict[str, Any],
    folder: Path,
    opened: contextlib.ExitStack,
) -> Stack:
    if stripe is not None:
        stripe.send_webhooks_to(f"{site.url}/v1/webhooks/stripe")
    return Stack(form, site, mailbox, stripe, options, folder, opened)


def _stripe_section(stripe: LocalStripe | None) -> dict[str, Any]:
    if stripe is None:
        return {}
    return {"stripe": StripeSettings(SECRET_KEY, WEBHOOK_SECRET, PUBLISHABLE_KEY, stripe.url)}
