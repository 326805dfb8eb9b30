"""The server's responses as typed values. Unknown fields are ignored."""

from typing import Any

import msgspec


class Money(msgspec.Struct, frozen=True):
    amount_minor: int
    currency: str


class EventSummary(msgspec.Struct):
    id: str
    name: str
    status: str
    starts_at: str
    sale_starts_at: str
    sale_ends_at: str
    paused: bool
    venue: dict[str, Any] | None = None
    from_price: Money | None = None
    presale_starts_at: str | None = None


class EventPage(msgspec.Struct):
    events: list[EventSummary]
    next: str | None = None


class Free(msgspec.Struct):
    name: str
    free: int
    seats: int
    price: Money | None = None


class Event(EventSummary):
    description: str = ""
    max_per_person: int = 0
    hold_s: int = 0
    map_url: str = ""
    free: int = 0
    seats: int = 0
    sections: list[Free] = []
    tiers: list[Free] = []
    card_tries: int = 3


class PlaceStatus(msgspec.Struct):
    """`state` is waiting, active or expired. Poll again after `poll_after_s`."""

    state: str
    phase: str
    position: int | None = None
    ahead: int | None = None
    poll_after_s: float = 5.0


class Place(PlaceStatus):
    place: str = ""


class Pass(msgspec.Struct):
    pass_: str = msgspec.field(name="pass")
    expires_at_s: int
    repeated: bool = False


class Hold(msgspec.Struct):
    booking: str
    event: str
    seats: list[str]
    amount: Money
    expires_at: str
    fence: int
    booking_token: str
    repeated: bool = False


class Transfer(msgspec.Struct):
    """Where a bank transfer goes, and the reference to give with it."""

    iban: str
    reference: str
    holder: str = ""
    bic: str = ""


class Checkout(msgspec.Struct):
    state: str
    client_secret: str = ""
    action_url: str = ""
    retry_at: str | None = None
    problem: str = ""
    tries_left: int | None = None
    methods: list[str] = []
    transfer: Transfer | None = None


class Booking(msgspec.Struct):
    booking: str
    event: str
    state: str
    seats: list[str]
    amount: Money
    fence: int
    created_at: str
    hold_expires_at: str | None = None
    confirmed_at: str | None = None
    checkout: Checkout | None = None


class RefundLine(msgspec.Struct):
    kind: str
    name: str
    quantity: int
    amount: Money
    seats: list[str]
    add_on: str = ""


class Refund(msgspec.Struct):
    refund: str
    booking: str
    state: str
    seats: list[str]
    amount: Money
    fee: Money
    created_at: str
    lines: list[RefundLine] = []


class Refunds(msgspec.Struct):
    refunds: list[Refund]


class Ticket(msgspec.Struct):
    ticket: str
    seat: str
    code: str
    event_name: str
    venue: str
    starts_at: str
    rotating: bool


class Tickets(msgspec.Struct):
    tickets: list[Ticket]


class WaitEntry(msgspec.Struct):
    entry: str
    event: str
    state: str
    count: int
    sections: list[str]
    position: int


class Offer(msgspec.Struct):
    offer: str
    event: str
    seats: list[str]
    expires_at: str


class Offers(msgspec.Struct):
    offers: list[Offer]


class ClaimedOffer(msgspec.Struct):
    booking: Booking
    booking_token: str
    pass_: Pass = msgspec.field(name="pass")


class Scan(msgspec.Struct):
    """`verdict` is ok, duplicate, revoked, wrong_event, forged, unreadable or old_code."""

    verdict: str
    says: str = ""
    ticket: str = ""
    seat: str = ""
    first: dict[str, str] | None = None


class DoorCounts(msgspec.Struct):
    tickets: int
    inside: int
    gates: list[dict[str, Any]] = []
