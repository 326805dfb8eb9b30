"""The change log as the organiser's pages show it: who did what, in words and with names."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import NotedChange
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.people.team import Actor
from frontrow.web.http.access import Caller
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_, Words

# act in the audit -> words
ACTS: Final = {
    "create_venue": N_("Venue created"),
    "change_venue": N_("Venue changed"),
    "create_event": N_("Event created"),
    "change_event": N_("Event changed"),
    "add_dates": N_("Dates added"),
    "publish_event": N_("Put on sale"),
    "open_sale": N_("Sale opened early"),
    "complete_event": N_("Event completed"),
    "sell_out_event": N_("Sold out"),
    "reopen_event": N_("On sale again"),
    "cancel_event": N_("Event cancelled"),
    "pause_sale": N_("Sale paused"),
    "resume_sale": N_("Sale resumed"),
    "steer_room": N_("Waiting room adjusted"),
    "refund": N_("Refund"),
    "retry_refund": N_("Refund retried"),
    "cancel_booking": N_("Booking cancelled"),
    "resend": N_("Email sent again"),
    "change_email": N_("Email address corrected"),
    "transfer_ticket": N_("Ticket sent to someone else"),
    "write_to_buyers": N_("Message to buyers"),
    "reseat": N_("Moved to other seats"),
    "check_in": N_("Checked in by name"),
    "check_out": N_("Let out by name"),
    "undo_scan": N_("Admission undone"),
    "undo_redemption": N_("Handing out an add-on undone"),
    "desk_sale": N_("Sold at the box office"),
    "give_tickets": N_("Free tickets given"),
    "waitlist_rules": N_("Waitlist rules set"),
    "import_codes": N_("Codes imported"),
    "make_codes": N_("Codes generated"),
    "open_presale": N_("Registration for the presale set"),
    "draw_presale": N_("Presale drawn"),
    "create_webhook": N_("Webhook created"),
    "rotate_webhook": N_("Webhook secret renewed"),
    "remove_webhook": N_("Webhook removed"),
    "redeliver": N_("Delivery sent again"),
    "test_webhook": N_("Webhook tested"),
    "export": N_("Table exported"),
    "choose_report_mail": N_("Report by email chosen"),
    "change_seller": N_("Seller changed"),
    "change_brand": N_("Brand changed"),
    "put_logo": N_("Logo changed"),
    "remove_logo": N_("Logo removed"),
    "change_wallet": N_("Keys of a wallet changed"),
    "remove_wallet": N_("Keys of a wallet removed"),
}
# recorded field -> words
FIELDS: Final = {
    "name": N_("Name"),
    "description": N_("Description"),
    "venue": N_("Venue"),
    "venue_id": N_("Venue"),
    "plan": N_("Seating plan"),
    "city": N_("City"),
    "country": N_("Country"),
    "time_zone": N_("Time zone"),
    "currency": N_("Currency"),
    "starts_at_us": N_("The show starts"),
    "ends_at_us": N_("The show ends"),
    "sale_starts_at_us": N_("The sale starts"),
    "sale_ends_at_us": N_("The sale ends"),
    "presale_starts_at_us": N_("The presale starts"),
    "tiers": N_("Prices"),
    "fees": N_("Fees"),
    "fees_shown": N_("How fees are shown"),
    "ticket_types": N_("Ticket types"),
    "add_ons": N_("Add-ons"),
    "discounts": N_("Discount and access codes"),
    "limits": N_("Shared limits"),
    "max_per_person": N_("Seats per person"),
    "hold_ttl_s": N_("Hold time in seconds"),
    "lonely_rule_until_percent": N_("Single seats avoided until percent sold"),
    "refunds": N_("Refund policy"),
    "withheld": N_("Withheld seats"),
    "card_tries": N_("Card attempts"),
    "payments": N_("Payment methods"),
    "room": N_("Waiting room"),
    "rotating_codes": N_("Rotating ticket codes"),
    "transfers_allowed": N_("Ticket transfers"),
    "reentry": N_("Exit and re-entry"),
    "block_disputed": N_("Disputed tickets at the gate"),
    "names_at_gates": N_("Names on gate devices"),
    "line_up": N_("Line-up"),
    "picture": N_("Picture"),
    "links": N_("Links"),
    "tax_basis_points": N_("Tax rate in hundredths of a percent"),
    "status": N_("State"),
    "paused": N_("Paused"),
    "booking": N_("Booking"),
    "refund": N_("Refund"),
    "amount_minor": N_("Amount"),
    "seats": N_("Seats"),
    "section": N_("Section"),
    "tier": N_("Price tier"),
    "subject": N_("Subject"),
    "recipients": N_("Recipients"),
    "message_id": N_("Message"),
    "leave": N_("Old seats"),
    "to": N_("New seats"),
    "table": N_("Table"),
    "frequency": N_("How often"),
    "like": N_("Copied from"),
    "action": N_("Action"),
    "rate_per_s": N_("People per second, at most"),
    "capacity": N_("People at once, at most"),
    "burst": N_("People at once after a pause, at most"),
    "message": N_("Message"),
    "reason": N_("Reason"),
    "url": N_("Address"),
    "webhook": N_("Webhook"),
    "delivery": N_("Delivery"),
    "colour": N_("Colour"),
    "wallet": N_("Wallet"),
    "account": N_("Account"),
    "holder": N_("Holder"),
    "dates": N_("Dates"),
    "paid_by": N_("Paid by"),
    "codes": N_("Codes"),
    "lane": N_("Lane"),
    "tickets": N_("Tickets"),
    "ticket": N_("Ticket"),
}
# recorded value of a field -> words
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "status": {
        EventStatus.DRAFT: N_("Draft"),
        EventStatus.ON_SALE: N_("On sale now"),
        EventStatus.SOLD_OUT: N_("Sold out"),
        EventStatus.COMPLETED: N_("Event completed"),
        EventStatus.CANCELLED: N_("Cancelled"),
    },
    "action": {
        "open": N_("Queue opened"),
        "pause": N_("Queue paused"),
        "resume": N_("Queue resumed"),
        "queue_all": N_("Everyone queues"),
        "close": N_("Queue closed"),
    },
    "paid_by": {"cash": N_("Cash"), "card_reader": N_("Card reader"), "free": N_("Free (guest list)")},
    "frequency": {"daily": N_("Every morning"), "weekly": N_("Every Monday morning"), "never": N_("Never")},
}
# ids of records and fingerprints of files: the API has them, and they tell people nothing
UNSAID: Final = frozenset({"refund", "message_id", "scan", "first", "opening", "plan", "picture"})
NOTHING: Final[Mapping[str, str]] = {}
CHANGED: Final = N_("Changed")
YES, NO = N_("yes"), N_("no")
MAX_CHARS: Final = 120
ROLE_WORDS: Final = {
    Role.OWNER: N_("Owner"),
    Role.MANAGER: N_("Manager"),
    Role.BOX_OFFICE: N_("Box office"),
    Role.DOOR: N_("Gate"),
    Role.READ_ONLY: N_("Read only"),
}


class ActDetail(msgspec.Struct, frozen=True):
    """One detail of a change: its name, and what it was (None if that is not known) and is."""

    name: str
    was: str | None
    now: str


class Act(msgspec.Struct, frozen=True):
    """A change as people read it."""

    number: int
    at_us: int
    who: str
    what: str
    event_id: str
    detail: list[ActDetail]


async def names_of_team(platform: Platform, caller: Caller) -> dict[str, str]:
    """The members' names by id; former members have no name."""
    reader = Actor(caller.id, caller.organiser_id, Role(caller.role) if caller.role else Role.READ_ONLY)
    members, _ = await platform.people.team.members(reader)
    return {one.id: one.name or one.email for one in members}


async def acts_of(
    platform: Platform,
    caller: Caller,
    changes: Sequence[NotedChange],
    words: Words,
    currencies: Mapping[str, str],
    called: Mapping[str, str] = NOTHING,
) -> list[Act]:
    """Changes with names and words instead of ids and codes.

    `currencies` are those of the events. `called` are the names of events and venues by id.
    """
    names = await names_of_team(platform, caller) if changes else {}
    return [
        Act(
            one.number,
            one.at_us,
            names.get(one.actor, one.actor),
            ACTS.get(one.act, one.act),
            one.event_id,
            details_of(one.detail, words, currencies.get(one.event_id, ""), called),
        )
        for one in changes
    ]


def details_of(detail: str, words: Words, currency: str = "", called: Mapping[str, str] = NOTHING) -> list[ActDetail]:
    """The recorded details in words: what, from, to."""
    recorded: dict[str, Any] = msgspec.json.decode(detail or "{}")
    changes: dict[str, list[Any]] = recorded.pop("changes", {})
    fields = recorded.pop("fields", [])

    def value(name: str, given: Any) -> str:
        return (
            called.get(given, "")
            if isinstance(given, str) and given in called
            else _value(name, given, words, currency)
        )

    found = [
        ActDetail(_label(name, words), value(name, was), value(name, now))
        for name, (was, now) in changes.items()
        if name not in UNSAID
    ]
    bare = [name for name in changes if name in UNSAID] if changes else fields  # no values, or of no use to people
    if bare:
        found.append(ActDetail(words(CHANGED), None, ", ".join(_label(name, words) for name in bare)))
    found += [
        ActDetail(_label(name, words), None, value(name, given))
        for name, given in recorded.items()
        if given not in (None, "", [], {}) and name not in UNSAID
    ]
    return found


def _label(name: str, words: Words) -> str:
    return words(FIELDS[name]) if name in FIELDS else name.replace("_", " ")


def _value(name: str, value: Any, words: Words, currency: str) -> str:
    """A recorded value as people read it."""
    if value in (None, "", [], {}):
        return "–"
    if isinstance(value, str) and value in VALUES.get(name, NOTHING):
        return words(VALUES[name][value])
    if name == "booking":
        return booking_number(str(value))
    if isinstance(value, bool):
        return words(YES) if value else words(NO)
    if name.endswith("_us") and isinstance(value, int):
        return words.when(value) if value else "–"
    if name.endswith("_minor") and isinstance(value, int) and currency:
        return words.money(value, currency)
    if isinstance(value, int):
        return words.number(value)
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"
