"""The groups of the API's document (OpenAPI tags), in the order in which `/docs` and the reference show them.

The path of an operation decides its group: the one that has the longest beginning of it.
"""

from dataclasses import dataclass
from typing import Final

_EVENT: Final = "/v1/events/{event_id}"
_OWN: Final = "/v1/organiser/events/{event_id}"
_BOOKING: Final = "/v1/bookings/{booking_id}"


@dataclass(frozen=True, slots=True)
class OperationGroup:
    """Operations that belong together. `paths` are the beginnings of their paths."""

    name: str
    description: str
    paths: tuple[str, ...]


GROUPS: Final = (
    OperationGroup("Events and seats", "Find events, read their maps, follow their seats.", ("/v1/events",)),
    OperationGroup("Waiting room", "Join the line, wait, and exchange the place for a pass.", (f"{_EVENT}/room",)),
    OperationGroup(
        "Holds",
        "Hold seats with a pass, extend the hold, release it.",
        (f"{_EVENT}/holds", f"{_BOOKING}/hold"),
    ),
    OperationGroup("Bookings", "Pay, cancel, return and refund.", ("/v1/bookings",)),
    OperationGroup("Invoices", "Invoices and credit notes of a booking, as PDF.", (f"{_BOOKING}/invoices",)),
    OperationGroup("Tickets", "The tickets of a booking: codes, PDF, calendar entry.", (f"{_BOOKING}/tickets",)),
    OperationGroup(
        "Transfers", "Send a ticket to somebody else, accept one.", (f"{_BOOKING}/transfers", "/v1/transfers")
    ),
    OperationGroup(
        "Waitlist",
        "Wait for seats of a sold-out event.",
        (f"{_EVENT}/waitlist", f"{_EVENT}/offers", "/v1/offers"),
    ),
    OperationGroup(
        "Presale and notices",
        "Register for a presale, or ask for an e-mail when the sale opens.",
        (f"{_EVENT}/presale", f"{_EVENT}/notices", "/v1/sign-ups"),
    ),
    OperationGroup("Sign-in", "Sessions of fans: by a mailed link, or as a guest.", ("/v1/auth",)),
    OperationGroup("Account", "What a fan sees and changes about themselves.", ("/v1/me",)),
    OperationGroup(
        "Staff sign-in",
        "Password, second factor, invitations.",
        ("/v1/auth/staff", "/v1/auth/invitation"),
    ),
    OperationGroup(
        "Organiser: bookings",
        "Find, refund and reseat bookings, transfer their tickets.",
        (f"{_OWN}/bookings", f"{_OWN}/failed-refunds", "/v1/organiser/disputes"),
    ),
    OperationGroup("Organiser: messages", "Write to the people who have tickets.", (f"{_OWN}/messages",)),
    OperationGroup(
        "Organiser: waiting room",
        "Steer the room and the waitlist of an event.",
        (f"{_OWN}/room", f"{_OWN}/waitlist"),
    ),
    OperationGroup(
        "Organiser: presale and codes",
        "Registration, its draw, imported codes.",
        (f"{_OWN}/presale", f"{_OWN}/codes"),
    ),
    OperationGroup(
        "Organiser: figures",
        "Seats, money and speed of a sale; who changed what.",
        (f"{_OWN}/figures", "/v1/organiser/audit"),
    ),
    OperationGroup("Organiser: invoices", "Every invoice and credit note.", ("/v1/organiser/invoices",)),
    OperationGroup("Organiser: events", "Draft, publish, change, pause, cancel.", ("/v1/organiser/events",)),
    OperationGroup("Organiser: venues", "Venues and their seating plans.", ("/v1/organiser/venues",)),
    OperationGroup(
        "Organiser: team",
        "Members, API keys, the seller's details, colour and logo, keys of wallets.",
        (
            "/v1/organiser/team",
            "/v1/organiser/keys",
            "/v1/organiser/seller",
            "/v1/organiser/brand",
            "/v1/organiser/wallets",
        ),
    ),
    OperationGroup(
        "Organiser: webhooks",
        "Signed notices to the organiser's own server.",
        ("/v1/organiser/webhooks",),
    ),
    OperationGroup("Gate", "Scan tickets, online and offline.", ("/v1/door",)),
    OperationGroup(
        "Server",
        "Health, metrics, keys, this document, the consent to a storm.",
        (
            "/healthz",
            "/readyz",
            "/metrics",
            "/.well-known",
            "/openapi.json",
            "/v1/webhooks",
            "/v1/channels",
            "/v1/storm",
        ),
    ),
)
_BEGINNINGS: Final = sorted(((path, group) for group in GROUPS for path in group.paths), key=lambda one: -len(one[0]))


def group_of(path: str) -> OperationGroup:
    """The group of a path like `/v1/events/{event_id}`."""
    for beginning, group in _BEGINNINGS:
        if path == beginning or path.startswith((f"{beginning}/", f"{beginning}.")):
            return group
    raise LookupError(f"{path} has no group; add it to one in web/api/operation_groups.py")
