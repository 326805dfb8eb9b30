"""The change log as the organiser's pages show it: who did what, in words and with names."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.model.event_changes import NotedChange
from frontrow.boxoffice.model.roles import Role
from frontrow.boxoffice.people.team import Actor
from frontrow.web.api.access import Caller
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_

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
    "reseat": N_("Moved to other seats"),
    "check_in": N_("Checked in by name"),
    "undo_scan": N_("Admission undone"),
    "desk_sale": N_("Sold at the desk"),
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
}
ROLE_WORDS: Final = {
    Role.OWNER: N_("Owner"),
    Role.MANAGER: N_("Manager"),
    Role.BOX_OFFICE: N_("Box office"),
    Role.DOOR: N_("Door"),
    Role.READ_ONLY: N_("Read only"),
}


class Act(msgspec.Struct, frozen=True):
    """A change as people read it."""

    number: int
    at_us: int
    who: str
    what: str
    event_id: str
    detail: list[tuple[str, str]]


async def names_of_team(platform: Platform, caller: Caller) -> dict[str, str]:
    """The members' names by id; former members have no name."""
    reader = Actor(caller.id, caller.organiser_id, Role(caller.role) if caller.role else Role.READ_ONLY)
    members, _ = await platform.people.team.members(reader)
    return {one.id: one.name or one.email for one in members}


async def acts_of(platform: Platform, caller: Caller, changes: Sequence[NotedChange]) -> list[Act]:
    """Changes with names and words instead of ids and codes."""
    names = await names_of_team(platform, caller) if changes else {}
    return [
        Act(
            one.number,
            one.at_us,
            names.get(one.actor, one.actor),
            ACTS.get(one.act, one.act),
            one.event_id,
            details_of(one.detail),
        )
        for one in changes
    ]


def details_of(detail: str) -> list[tuple[str, str]]:
    """The recorded details as short texts: (name, value)."""
    fields: dict[str, Any] = msgspec.json.decode(detail or "{}")
    return [(name, _short(value)) for name, value in fields.items() if value not in (None, "", [], {})]


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
