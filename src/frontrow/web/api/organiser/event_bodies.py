"""The bodies of an organiser's event, with every field, drafts included."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from frontrow.boxoffice.events.event_editing import EventEdit
from frontrow.boxoffice.events.model.events import (
    MAX_CARD_TRIES,
    MAX_LINE_CHARS,
    MAX_LINE_UP,
    MAX_LINKS,
    USUAL_CARD_TRIES,
    Event,
    EventLink,
    Fee,
    FeesShown,
    PriceTier,
)
from frontrow.boxoffice.events.model.room_rules import Lane, RoomRules
from frontrow.boxoffice.payments.model.payment_rules import (
    MAX_DAYS_BEFORE,
    MAX_PAY_DAYS,
    METHOD_IDS,
    USUAL_DAYS_BEFORE,
    PaymentRules,
)
from frontrow.boxoffice.pricing.model.taxes import MAX_TAX_BASIS_POINTS
from frontrow.boxoffice.refunds.model.refund_policy import MAX_REFUND_STEPS, RefundPolicy, RefundStep
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.shared.local_time import time_text
from frontrow.shared.money import Money
from frontrow.web.api.organiser.option_bodies import (
    AddOnGiven,
    AddOns,
    Discounts,
    DiscountView,
    SharedLimitGiven,
    SharedLimits,
    TicketTypeGiven,
    TicketTypes,
    add_on_views,
    add_ons_of,
    discount_views,
    discounts_of,
    limit_views,
    limits_of,
    type_views,
    types_of,
)
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.bodies.json_values import MoneyView, Time

Minor = Annotated[int, msgspec.Meta(ge=0, le=10**10, examples=[5000])]
Points = Annotated[int, msgspec.Meta(ge=0, le=10_000, description="hundredths of a percent")]
TaxPoints = Annotated[
    int, msgspec.Meta(ge=0, le=MAX_TAX_BASIS_POINTS, description="instead of the seller's rate; 1900 is 19 %")
]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, examples=["Aurora"])]
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Currency = Annotated[str, msgspec.Meta(min_length=3, max_length=3, examples=["EUR"])]
Id = Annotated[str, msgspec.Meta(max_length=60)]
CardTries = Annotated[
    int,
    msgspec.Meta(
        ge=1,
        le=MAX_CARD_TRIES,
        description=f"declined cards after which the seats are free again; {USUAL_CARD_TRIES} if not given",
    ),
]
PerPerson = Annotated[int, msgspec.Meta(ge=1, le=100, examples=[8])]
HoldS = Annotated[int, msgspec.Meta(ge=1, le=3600, examples=[600])]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
SeatId = Annotated[str, msgspec.Meta(max_length=100, examples=["S-A-1"])]
Withheld = Annotated[list[SeatId], msgspec.Meta(max_length=200_000)]


class TierGiven(msgspec.Struct, forbid_unknown_fields=True):
    """The price of all seats whose tier is `key`."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["front"])]
    amount_minor: Minor
    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    colour: Annotated[str, msgspec.Meta(max_length=7, pattern=r"^(#[0-9a-fA-F]{6})?$", examples=["#c02040"])] = ""


class FeeGiven(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100, examples=["Service fee"])]
    per_seat_minor: Minor = 0
    per_booking_minor: Minor = 0
    basis_points: Points = 0


class RefundStepGiven(msgspec.Struct, forbid_unknown_fields=True):
    """Until `until_s` before the show, this share of what was paid is refunded."""

    until_s: Annotated[int, msgspec.Meta(ge=0, le=31_536_000, examples=[86_400])]
    basis_points: Annotated[int, msgspec.Meta(ge=1, le=10_000, examples=[5_000])] = 10_000


class RefundRules(msgspec.Struct, forbid_unknown_fields=True):
    """The refund of returned seats and add-ons, until `window_s` before the show. Organisers can always refund more.

    With `steps`, the earliest first, less is refunded as the show comes nearer; `window_s` is then the first one's end.
    Fees that were paid with the price go back with their seat, or with the last one, unless they are kept.
    """

    allowed: bool = True
    window_s: Annotated[int, msgspec.Meta(ge=0, le=31_536_000)] = 172_800
    fee_per_seat_minor: Minor = 0
    fee_basis_points: Points = 0
    keeps_seat_fees: bool = False
    keeps_booking_fees: bool = False
    steps: Annotated[list[RefundStepGiven], msgspec.Meta(max_length=MAX_REFUND_STEPS)] = []


class PaymentRulesGiven(msgspec.Struct, forbid_unknown_fields=True):
    """How fans may pay. Without `methods` with everything that the server's provider has. Slow methods (`sepa_debit`,
    `bank_transfer`) hold the seats for `pay_days` days and are offered until `days_before_show` days before the show; 0
    `pay_days`: they are not offered. `slow_with_queue`: also while people wait in the waiting room."""

    methods: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=30, examples=["ideal"])]],
        msgspec.Meta(max_length=len(METHOD_IDS), description=f"of {', '.join(METHOD_IDS)}"),
    ] = []
    pay_days: Annotated[int, msgspec.Meta(ge=0, le=MAX_PAY_DAYS)] = 0
    days_before_show: Annotated[int, msgspec.Meta(ge=0, le=MAX_DAYS_BEFORE)] = USUAL_DAYS_BEFORE
    slow_with_queue: bool = False


class LaneGiven(msgspec.Struct, forbid_unknown_fields=True):
    """One lane of the queue. The first is for everybody, the second needs a code. Lanes share admissions by weight."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=35, examples=["fans"])]
    weight: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1


Lanes = Annotated[list[LaneGiven], msgspec.Meta(min_length=1, max_length=2)]


class RoomRulesGiven(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of the waiting room. Fields that are left out stay as they are (at first: the server's settings).

    Once the event is published, `one_place_per_person` is fixed and lanes can only be added or weighted anew.
    """

    lanes: Lanes | None = None
    depth_cap: Annotated[
        int, msgspec.Meta(ge=0, le=10**9, description="people above this number are sent away; 0: no limit")
    ] | (None) = None
    human: Literal["none", "altcha", "turnstile", "hcaptcha", "recaptcha"] | None = None
    one_place_per_person: bool | None = None


class RoomRulesView(msgspec.Struct):
    """All rules of the waiting room."""

    lanes: list[LaneGiven]
    depth_cap: int
    human: str
    one_place_per_person: bool


Tiers = Annotated[list[TierGiven], msgspec.Meta(max_length=32)]
Fees = Annotated[list[FeeGiven], msgspec.Meta(max_length=10)]


Line = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_LINE_CHARS)]


class LinkGiven(msgspec.Struct, forbid_unknown_fields=True):
    """A page elsewhere about the event. Without a name its address is shown."""

    url: Annotated[str, msgspec.Meta(min_length=8, max_length=500, examples=["https://example.org/band"])]
    name: Annotated[str, msgspec.Meta(max_length=MAX_LINE_CHARS)] = ""


class EventChange(msgspec.Struct, forbid_unknown_fields=True):
    """Fields that are left out stay. Venue, currency and rotating codes are fixed once the event is published.

    `presale_starts_at`: from then until `sale_starts_at` only people with a code may join the waiting room and buy;
    null removes the presale from a draft.
    """

    name: Name | None = None
    description: Text | None = None
    venue: Id | None = None
    currency: Currency | None = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    sale_starts_at: Moment | None = None
    sale_ends_at: Moment | None = None
    tiers: Tiers | None = None
    fees: Fees | None = None
    max_per_person: PerPerson | None = None
    hold_s: HoldS | None = None
    lonely_rule_until_percent: Percent | None = None
    refunds: RefundRules | None = None
    withheld: Withheld | None = None
    room: RoomRulesGiven | None = None
    rotating_codes: bool | None = None
    reentry: bool | None = None
    block_disputed: bool | None = None
    names_at_gates: bool | None = None
    transfers_allowed: bool | None = None
    line_up: Annotated[list[Line], msgspec.Meta(max_length=MAX_LINE_UP)] | None = None
    links: Annotated[list[LinkGiven], msgspec.Meta(max_length=MAX_LINKS)] | None = None
    tax_basis_points: TaxPoints | None = None
    presale_starts_at: Moment | msgspec.UnsetType | None = msgspec.UNSET
    card_tries: CardTries | None = None
    payments: PaymentRulesGiven | None = None
    ticket_types: TicketTypes | None = None
    add_ons: AddOns | None = None
    discounts: Discounts | None = None
    limits: SharedLimits | None = None
    fees_shown: Literal["included", "beside"] | None = None


class NewEvent(EventChange, forbid_unknown_fields=True, kw_only=True):
    """A draft. Prices, fees and rules may come later."""

    name: Name
    venue: Id
    currency: Currency
    starts_at: Moment
    sale_starts_at: Moment
    sale_ends_at: Moment


class TierView(msgspec.Struct):
    key: str
    name: str
    colour: str
    price: MoneyView


class OwnEventSummary(msgspec.Struct):
    """An event in the organiser's list."""

    event: str
    name: str
    status: Annotated[str, msgspec.Meta(examples=["draft"])]
    paused: bool
    venue: str
    starts_at: Time
    sale_starts_at: Time
    sale_ends_at: Time


class OwnEventView(OwnEventSummary):
    """Everything about an event of the organiser; `version` is also its ETag."""

    version: str = ""
    description: str = ""
    currency: str = ""
    ends_at: Time | None = None
    tiers: list[TierView] = []
    fees: list[FeeGiven] = []
    max_per_person: int = 0
    hold_s: int = 0
    lonely_rule_until_percent: int = 0
    refunds: RefundRules | None = None
    withheld: list[str] = []
    plan_hash: str = ""
    room: RoomRulesView | None = None
    rotating_codes: bool = False
    presale_starts_at: Time | None = None
    card_tries: int = USUAL_CARD_TRIES
    payments: PaymentRulesGiven | None = None
    tax_basis_points: int | None = None
    fees_shown: Annotated[
        str,
        msgspec.Meta(examples=["included"], description="`included` in every price, or `beside` every price"),
    ] = "included"
    show: str = ""
    reentry: bool = False
    block_disputed: bool = False
    transfers_allowed: bool = True
    ticket_types: list[TicketTypeGiven] = []
    add_ons: list[AddOnGiven] = []
    discounts: list[DiscountView] = []
    limits: list[SharedLimitGiven] = []
    line_up: list[str] = []
    picture: str = ""
    links: list[LinkGiven] = []
    names_at_gates: bool = False


class OwnEventPage(msgspec.Struct):
    events: list[OwnEventSummary]
    next: str | None = None


def edit_of(given: EventChange, currency: str) -> EventEdit:
    """The edit that a body requests. Prices are in the event's currency."""
    money = given.currency or currency
    tiers = fees = refunds = None
    if given.tiers is not None:
        tiers = tuple(PriceTier(t.key, Money(t.amount_minor, money), t.name, t.colour) for t in given.tiers)
    if given.fees is not None:
        fees = tuple(Fee(f.name, f.per_seat_minor, f.per_booking_minor, f.basis_points) for f in given.fees)
    if given.refunds is not None:
        r = given.refunds
        refunds = RefundPolicy(
            r.allowed,
            r.steps[0].until_s if r.steps else r.window_s,
            r.fee_per_seat_minor,
            r.fee_basis_points,
            r.keeps_seat_fees,
            r.keeps_booking_fees,
            tuple(RefundStep(one.until_s, one.basis_points) for one in r.steps),
        )
    return EventEdit(
        name=given.name,
        description=given.description,
        venue_id=given.venue,
        currency=given.currency,
        starts_at_us=moment_us(given.starts_at, "starts_at"),
        ends_at_us=moment_us(given.ends_at, "ends_at"),
        sale_starts_at_us=moment_us(given.sale_starts_at, "sale_starts_at"),
        sale_ends_at_us=moment_us(given.sale_ends_at, "sale_ends_at"),
        tiers=tiers,
        fees=fees,
        max_per_person=given.max_per_person,
        hold_ttl_s=given.hold_s,
        lonely_rule_until_percent=given.lonely_rule_until_percent,
        refunds=refunds,
        withheld=None if given.withheld is None else tuple(given.withheld),
        room=_room_of(given.room),
        rotating_codes=given.rotating_codes,
        reentry=given.reentry,
        block_disputed=given.block_disputed,
        names_at_gates=given.names_at_gates,
        transfers_allowed=given.transfers_allowed,
        line_up=None if given.line_up is None else tuple(given.line_up),
        links=None if given.links is None else tuple(EventLink(one.url, one.name) for one in given.links),
        presale_starts_at_us=_presale_of(given.presale_starts_at),
        card_tries=given.card_tries,
        payments=_payments_of(given.payments),
        ticket_types=types_of(given.ticket_types),
        add_ons=add_ons_of(given.add_ons),
        discounts=discounts_of(given.discounts),
        limits=limits_of(given.limits),
        tax_basis_points=given.tax_basis_points,
        fees_shown=None if given.fees_shown is None else FeesShown(given.fees_shown),
    )


def _payments_of(given: PaymentRulesGiven | None) -> PaymentRules | None:
    if given is None:
        return None
    return PaymentRules(tuple(given.methods), given.pay_days, given.days_before_show, given.slow_with_queue)


def _room_of(given: RoomRulesGiven | None) -> RoomRules | None:
    if given is None:
        return None
    lanes = None if given.lanes is None else tuple(Lane(lane.name, lane.weight) for lane in given.lanes)
    return RoomRules(lanes, given.depth_cap, given.human, given.one_place_per_person)


def _presale_of(given: datetime | msgspec.UnsetType | None) -> int | None:
    """The presale's start; 0 for null, which removes the presale from a draft."""
    if isinstance(given, msgspec.UnsetType):
        return None
    return moment_us(given, "presale_starts_at") or 0


def summary_of(event: Event) -> OwnEventSummary:
    return OwnEventSummary(
        event.id,
        event.name,
        event.status.value,
        event.paused,
        event.venue_id,
        time_text(event.starts_at_us),
        time_text(event.sale_starts_at_us),
        time_text(event.sale_ends_at_us),
    )


def view_of(event: Event, plan: Plan, tag: str, rules: RoomRules) -> OwnEventView:
    """The whole event. `rules` are those of its room, with defaults filled in."""
    summary = summary_of(event)
    tiers = [TierView(t.key, t.name, t.colour, MoneyView(t.price.minor, t.price.currency)) for t in event.tiers]
    fees = [FeeGiven(f.name, f.per_seat_minor, f.per_booking_minor, f.basis_points) for f in event.fees]
    policy = event.refunds
    return OwnEventView(
        summary.event,
        summary.name,
        summary.status,
        summary.paused,
        summary.venue,
        summary.starts_at,
        summary.sale_starts_at,
        summary.sale_ends_at,
        tag,
        event.description,
        event.currency,
        time_text(event.ends_at_us) if event.ends_at_us else None,
        tiers,
        fees,
        event.max_per_person,
        event.hold_ttl_s,
        event.lonely_rule_until_percent,
        RefundRules(
            policy.allowed,
            policy.window_s,
            policy.fee_per_seat_minor,
            policy.fee_basis_points,
            policy.keeps_seat_fees,
            policy.keeps_booking_fees,
            [RefundStepGiven(one.until_s, one.basis_points) for one in policy.steps],
        ),
        [plan.seat_id(seat) for seat in sorted(event.withheld)],
        event.plan_hash,
        RoomRulesView(
            [LaneGiven(lane.name, lane.weight) for lane in rules.lanes or ()],
            rules.depth_cap or 0,
            rules.human or "none",
            bool(rules.one_place_per_person),
        ),
        event.rotating_codes,
        time_text(event.presale_starts_at_us) if event.presale_starts_at_us else None,
        event.card_tries,
        PaymentRulesGiven(
            list(event.payments.methods),
            event.payments.pay_days,
            event.payments.days_before_show,
            event.payments.slow_with_queue,
        ),
        event.tax_basis_points,
        event.fees_shown.value,
        event.show_id,
        event.reentry,
        event.block_disputed,
        event.transfers_allowed,
        type_views(event),
        add_on_views(event),
        discount_views(event),
        limit_views(event),
        list(event.line_up),
        event.picture,
        [LinkGiven(one.url, one.name) for one in event.links],
        event.names_at_gates,
    )
