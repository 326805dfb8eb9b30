"""Builds the services for people: accounts, sign-in, sign-ups for a presale, and the time zone of their event."""

import functools

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.ports.channels import Channel, InAppWriter
from frontrow.boxoffice.people.people import People
from frontrow.boxoffice.presale.presales import Presales
from frontrow.boxoffice.presale.signup_mail import SignupLinks, SignupMail
from frontrow.boxoffice.presale.signups import Signups
from frontrow.core.clock import Clock
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.ids import Ids
from frontrow.web.platform.fan_codes import FanCodes
from frontrow.web.platform.platform import PresaleServices


def make_people(
    settings: PlatformSettings,
    ledger: SqlLedger,
    mail: Channel,
    clock: Clock,
    ids: Ids,
    secret_keys: Secrets,
    writer: InAppWriter,
) -> People:
    return People(
        ledger,
        mail,
        clock,
        ids,
        secret_keys.key("people"),
        settings=settings.people,
        public_url=settings.public_url,
        limits_url=settings.redis.url or "memory://",
        writer=writer,
    )


def make_presale(
    settings: PlatformSettings,
    ledger: SqlLedger,
    mail_channel: Channel,
    clock: Clock,
    ids: Ids,
    secret_keys: Secrets,
    people: People,
    codes: FanCodes,
) -> PresaleServices:
    book, links = ledger.signups, SignupLinks(secret_keys.key("sign-ups"), settings.public_url)
    mail = SignupMail(ledger.messages, mail_channel, people.vault, clock, links)
    zone = functools.partial(zone_of, ledger)
    return PresaleServices(
        signups=Signups(book, mail, people.sign_in_limits, clock, ids, ledger.catalogue.event, zone),
        presales=Presales(book, mail, codes, clock, ledger.catalogue.event, zone, ledger.organiser.note),
    )


async def zone_of(ledger: SqlLedger, event: Event) -> str:
    venue = await ledger.catalogue.venue(event.venue_id)
    return venue.time_zone if venue and venue.time_zone else "UTC"


async def learn_zone(ledger: SqlLedger, zones: dict[str, str], event: Event) -> None:
    """Keep the time zone of an event's venue, for pages that cannot ask for it."""
    zones[event.id] = await zone_of(ledger, event)
