"""An Event: one show on one plan, with its status, sale window, prices, fees, caps and withheld seats.

Its status moves only along STATUS_MOVES. Whether seats can be bought at an instant is `check_on_sale`: on_sale and
inside the sale window (half-open). A sold-out event goes back on sale when a seat returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import urlsplit

from frontrow.boxoffice.events.model.room_rules import NO_RULES, RoomRules, check_rules
from frontrow.boxoffice.payments.model.payment_rules import ANY_METHOD, PaymentRules, check_payment_rules
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType, check_options
from frontrow.boxoffice.pricing.model.taxes import check_tax
from frontrow.boxoffice.refunds.model.refund_policy import DEFAULT_POLICY, RefundPolicy, check_policy
from frontrow.boxoffice.seats.model.venues import MAX_SEATS_NAMED, Plan
from frontrow.core.errors import InvalidInput, NotFound, Refused
from frontrow.shared.money import Money

MAX_PER_PERSON = 100
MAX_HOLD_TTL_S = 3600
SHOW_US = 6 * 3600 * 1_000_000  # the assumed length of a show without an end
MAX_CARD_TRIES = 5
USUAL_CARD_TRIES = 3
MAX_LINE_UP = 50
MAX_LINKS = 10
MAX_LINE_CHARS = 100


class EventStatus(StrEnum):
    DRAFT = "draft"
    ON_SALE = "on_sale"
    SOLD_OUT = "sold_out"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class FeesShown(StrEnum):
    """Whether a seat's fees are a part of every price that people see, or stand beside every price."""

    INCLUDED = "included"
    BESIDE = "beside"


class EventMove(StrEnum):
    PUBLISH = "publish"
    SELL_OUT = "sell_out"
    REOPEN = "reopen"
    COMPLETE = "complete"
    CANCEL = "cancel"


# Every allowed move. A move that is not in the table is refused.
STATUS_MOVES: dict[tuple[EventStatus, EventMove], EventStatus] = {
    (EventStatus.DRAFT, EventMove.PUBLISH): EventStatus.ON_SALE,
    (EventStatus.DRAFT, EventMove.CANCEL): EventStatus.CANCELLED,
    (EventStatus.ON_SALE, EventMove.SELL_OUT): EventStatus.SOLD_OUT,
    (EventStatus.ON_SALE, EventMove.COMPLETE): EventStatus.COMPLETED,
    (EventStatus.ON_SALE, EventMove.CANCEL): EventStatus.CANCELLED,
    (EventStatus.SOLD_OUT, EventMove.REOPEN): EventStatus.ON_SALE,
    (EventStatus.SOLD_OUT, EventMove.COMPLETE): EventStatus.COMPLETED,
    (EventStatus.SOLD_OUT, EventMove.CANCEL): EventStatus.CANCELLED,
}


class EventMoveRefused(Refused):
    code = "event_move_refused"


class NotOnSale(Refused):
    code = "not_on_sale"


class EventCancelled(NotOnSale):
    """The event is cancelled: nothing is held or sold any more, not even seats that were about to be paid."""

    def __init__(self, event_id: str) -> None:
        super().__init__("this event was cancelled; nothing is charged", event=event_id, reason="cancelled")


@dataclass(frozen=True, slots=True)
class PriceTier:
    """The price of all seats of the plan whose `tier` is this `key`."""

    key: str
    price: Money
    name: str = ""
    colour: str = ""

    @property
    def shown_name(self) -> str:
        """Its name; its key, capitalised, if it has none."""
        return self.name or self.key[:1].upper() + self.key[1:]


@dataclass(frozen=True, slots=True)
class Fee:
    """A fee on top of the tier's price: per seat, per booking, and in basis points of each seat's price."""

    name: str
    per_seat_minor: int = 0
    per_booking_minor: int = 0
    basis_points: int = 0


@dataclass(frozen=True, slots=True)
class EventLink:
    """A page elsewhere about the event or who performs."""

    url: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One show. `withheld` are the indexes of seats that are not sold. Times are in microseconds."""

    id: str
    name: str
    venue_id: str
    plan_hash: str
    currency: str
    starts_at_us: int
    sale_starts_at_us: int
    sale_ends_at_us: int
    tiers: tuple[PriceTier, ...]
    status: EventStatus = EventStatus.DRAFT
    fees: tuple[Fee, ...] = ()
    max_per_person: int = 8
    hold_ttl_s: int = 600
    withheld: frozenset[int] = field(default=frozenset())
    lonely_rule_until_percent: int = 90  # the single-seat rule ends once this much of the plan is taken; 0: no rule
    ends_at_us: int = 0
    paused: bool = False
    description: str = ""
    refunds: RefundPolicy = DEFAULT_POLICY
    tax_basis_points: int | None = None  # of the tax that prices include; None: the seller's rate
    card_tries: int = USUAL_CARD_TRIES  # after this many declined cards the seats are free again
    payments: PaymentRules = ANY_METHOD  # how fans may pay
    organiser_id: str = "org_default"  # see people.model.people.DEFAULT_ORGANISER
    room: RoomRules = NO_RULES  # how its waiting room is run
    picture: str = ""  # the hash of its picture; empty: a drawn poster
    line_up: tuple[str, ...] = ()  # who performs, in order
    links: tuple[EventLink, ...] = ()
    transfers_allowed: bool = True  # fans may transfer tickets to other people
    rotating_codes: bool = False  # tickets show a code that changes every 30 seconds
    presale_starts_at_us: int = 0  # from then until the sale starts, only people with a code may buy; 0: no presale
    reentry: bool = False  # people may leave and come back: gates scan tickets at the exit too
    block_disputed: bool = False  # gates refuse tickets whose money is disputed; else they let them in and say so
    names_at_gates: bool = False  # gates keep the names of guests on their devices, to find them without a network
    fees_shown: FeesShown = FeesShown.INCLUDED
    show_id: str = ""  # shared by the dates of one show (events.model.show_dates); empty: it has one date
    ticket_types: tuple[TicketType, ...] = ()  # these four: pricing.model.sale_options
    add_ons: tuple[AddOn, ...] = ()
    discounts: tuple[Discount, ...] = ()
    limits: tuple[SharedLimit, ...] = ()

    @property
    def opens_at_us(self) -> int:
        """When the first people may buy: the start of the presale, or of the sale if there is no presale."""
        return self.presale_starts_at_us or self.sale_starts_at_us

    @property
    def poster_seed(self) -> str:
        """What its drawn poster follows from; all dates of a show have one."""
        return self.show_id or self.id

    def moved(self, move: EventMove) -> "Event":
        """This event after `move`, or `EventMoveRefused`."""
        return replace(self, status=next_status(self.status, move))

    def tier(self, key: str) -> PriceTier:
        """The price tier with that key."""
        for tier in self.tiers:
            if tier.key == key:
                return tier
        raise InvalidInput(f"{self.name} has no price tier {key!r}", param="tier")


def over_at_us(event: Event) -> int:
    """When the event is over: the show has ended and nothing more is sold."""
    return max(event.ends_at_us or event.starts_at_us + SHOW_US, event.sale_ends_at_us)


def next_status(status: EventStatus, move: EventMove) -> EventStatus:
    """The status after `move`, or `EventMoveRefused` with the moves that are possible."""
    try:
        return STATUS_MOVES[status, move]
    except KeyError:
        possible = [m.value for s, m in STATUS_MOVES if s == status]
        hint = f"it can {', '.join(possible)}" if possible else "that is final"
        raise EventMoveRefused(f"an event that is {status} cannot {move}; {hint}", event_status=status.value) from None


def check_on_sale(event: Event, now_us: int) -> None:
    """Raise `NotOnSale`, with the reason and the opening time, unless seats can be bought at `now_us`."""
    if event.status is not EventStatus.ON_SALE:
        raise NotOnSale(f"{event.name} is {event.status.value.replace('_', ' ')}", reason=event.status.value)
    if event.paused:
        raise NotOnSale(f"the sale of {event.name} is paused; try again soon", reason="paused", retry_after_s=5.0)
    if now_us < event.opens_at_us:
        wait_s = (event.opens_at_us - now_us) / 1_000_000
        raise NotOnSale(f"the sale of {event.name} has not begun", reason="not_begun", retry_after_s=wait_s)
    if now_us >= event.sale_ends_at_us:
        raise NotOnSale(f"the sale of {event.name} is over", reason="over")


def check_event(event: Event, plan: Plan) -> Event:
    """The event, if it can be sold on `plan`; otherwise an `InvalidInput` that names the field."""
    if event.sale_starts_at_us >= event.sale_ends_at_us:
        raise InvalidInput("the sale must end after it starts", param="sale_ends_at")
    if event.presale_starts_at_us and event.presale_starts_at_us >= event.sale_starts_at_us:
        raise InvalidInput("the presale must start before the sale", param="presale_starts_at")
    if event.ends_at_us and event.ends_at_us <= event.starts_at_us:
        raise InvalidInput("the show must end after it starts", param="ends_at")
    if not 1 <= event.max_per_person <= MAX_PER_PERSON:
        raise InvalidInput(f"max_per_person must be 1 to {MAX_PER_PERSON}", param="max_per_person")
    if not 1 <= event.hold_ttl_s <= MAX_HOLD_TTL_S:
        raise InvalidInput(f"hold_ttl_s must be 1 to {MAX_HOLD_TTL_S}", param="hold_ttl_s")
    if event.tax_basis_points is not None:
        check_tax(event.tax_basis_points)
    if not 1 <= event.card_tries <= MAX_CARD_TRIES:
        raise InvalidInput(f"card_tries must be 1 to {MAX_CARD_TRIES}", param="card_tries")
    check_payment_rules(event.payments)
    if not 0 <= event.lonely_rule_until_percent <= 100:
        raise InvalidInput("lonely_rule_until_percent must be 0 to 100", param="lonely_rule_until_percent")
    outside = sorted(index for index in event.withheld if not 0 <= index < plan.size)
    if outside:
        raise InvalidInput(
            f"withheld seats {outside[:MAX_SEATS_NAMED]} are not in plan {plan.name!r}", param="withheld"
        )
    check_rules(event.room)
    _check_words(event)
    _check_prices(event, plan)
    check_options(event.ticket_types, event.add_ons, event.discounts, event.limits, plan.tiers)
    return event


def _check_words(event: Event) -> None:
    if len(event.line_up) > MAX_LINE_UP or any(not 0 < len(name.strip()) <= MAX_LINE_CHARS for name in event.line_up):
        raise InvalidInput(
            f"a line-up has at most {MAX_LINE_UP} names of 1 to {MAX_LINE_CHARS} characters", param="line_up"
        )
    for link in event.links:
        parts = urlsplit(link.url) if link.url.isascii() and link.url.isprintable() else None
        if parts is None or parts.scheme not in ("https", "http") or not parts.hostname or " " in link.url:
            raise InvalidInput(f"{link.url[:60]!r} is not a link; it begins with https://", param="links")
    if len(event.links) > MAX_LINKS or any(
        len(link.url) > 500 or len(link.name) > MAX_LINE_CHARS for link in event.links
    ):
        raise InvalidInput(f"an event has at most {MAX_LINKS} links of up to 500 characters", param="links")


def _check_prices(event: Event, plan: Plan) -> None:
    keys = [tier.key for tier in event.tiers]
    if len(set(keys)) != len(keys):
        raise InvalidInput("two price tiers have the same key", param="tiers")
    missing = [key for key in plan.tiers if key not in keys]
    if missing:
        raise InvalidInput(
            f"price tiers missing for {', '.join(missing[:MAX_SEATS_NAMED])}: seats need a price", param="tiers"
        )
    for tier in event.tiers:
        if tier.price.currency != event.currency or tier.price.minor < 0:
            raise InvalidInput(f"tier {tier.key}: {tier.price} must be 0 or more {event.currency}", param="tiers")
    check_policy(event.refunds)
    check_fees(event.fees)


def check_fees(fees: Sequence[Fee]) -> None:
    """Raise `InvalidInput` for a fee below zero."""
    for fee in fees:
        if min(fee.per_seat_minor, fee.per_booking_minor, fee.basis_points) < 0:
            raise InvalidInput(f"fee {fee.name}: amounts must be 0 or more", param="fees")


class EventNotFound(NotFound):
    code = "event_not_found"
