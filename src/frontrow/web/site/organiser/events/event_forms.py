"""Each step of an event as fields: what they show (`VALUES`), and the edit they mean once sent (`READERS`)."""

from collections.abc import Callable, Sequence
from typing import Final

from frontrow.boxoffice.events.event_editing import MAX_DESCRIPTION_CHARS, EventEdit
from frontrow.boxoffice.events.model.events import (
    MAX_CARD_TRIES,
    MAX_PER_PERSON,
    USUAL_CARD_TRIES,
    Event,
    EventLink,
    EventStatus,
    Fee,
    FeesShown,
    PriceTier,
)
from frontrow.boxoffice.events.model.room_rules import MAX_DEPTH, MAX_WEIGHT, PRESALE_LANE, Lane, RoomRules
from frontrow.boxoffice.payments.model.payment_rules import (
    MAX_DAYS_BEFORE,
    MAX_PAY_DAYS,
    METHOD_IDS,
    PaymentRules,
)
from frontrow.boxoffice.pricing.model.taxes import MAX_TAX_BASIS_POINTS, SELLERS_TAX
from frontrow.boxoffice.refunds.model.refund_policy import MAX_REFUND_STEPS, RefundPolicy, RefundStep
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.seat_ranges import format_seat_ranges, parse_seat_ranges
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import BASIS_POINTS, Money
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.form_fields import BAD_TAX, NEEDED, Reading, local_text, money_text, percent_text
from frontrow.web.site.organiser.refusal_sentences import sentence_of

MOST_FEES: Final = 6
MOST_HOLD_MIN: Final = 60
MOST_REFUND_H: Final = 24 * 365
REFUND_ROWS: Final = 3  # steps of the refund policy that the form shows; more if there are more
PAID_BEFORE_SHOW: Final = N_("At least the days to pay, so that the money comes before the show.")
STEPS_FALL: Final = N_("Each step must end later than the one before and refund less.")
MAX_SEATS_CHARS: Final = 60_000
MAX_LINES_CHARS: Final = 8_000
Values = dict[str, str]


def details(event: Event, plan: Plan, zone: str) -> Values:
    return {
        "name": event.name,
        "description": event.description,
        "line_up": "\n".join(event.line_up),
        "links": "\n".join(f"{link.url} {link.name}".strip() for link in event.links),
        "starts": local_text(event.starts_at_us, zone),
        "ends": local_text(event.ends_at_us, zone),
    }


def read_details(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    return EventEdit(
        name=reading.text("name"),
        description=reading.text("description", MAX_DESCRIPTION_CHARS, needed=False),
        line_up=_lines(reading, "line_up"),
        links=_links(reading),
        starts_at_us=reading.when("starts"),
        ends_at_us=reading.when("ends", needed=False),
    )


def _lines(reading: Reading, name: str) -> tuple[str, ...] | None:
    """The lines of a field that are not empty; None if the form has no such field."""
    if name not in reading.form.first():
        return None
    lines = (line.strip() for line in reading.form.one(name, MAX_LINES_CHARS).splitlines())
    return tuple(line for line in lines if line)


def _links(reading: Reading) -> tuple[EventLink, ...] | None:
    """One link per line: its address, then its name."""
    lines = _lines(reading, "links")
    if lines is None:
        return None
    return tuple(EventLink(url, name.strip()) for url, _, name in (line.partition(" ") for line in lines))


def venue(event: Event, plan: Plan, zone: str) -> Values:
    return {"venue": event.venue_id, "currency": event.currency}


def read_venue(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    """Another venue or currency: prices and seats kept back belonged to the old one."""
    chosen, currency = reading.form.one("venue", 60), reading.form.one("currency", 3).upper()
    if not chosen:
        reading.errors["venue"] = NEEDED
    if (chosen, currency) == (event.venue_id, event.currency):
        return EventEdit()
    moved = chosen != event.venue_id
    return EventEdit(
        venue_id=chosen if moved else None,
        currency=currency,
        tiers=(),
        fees=() if currency != event.currency else None,
        withheld=() if moved else None,
    )


def prices(event: Event, plan: Plan, zone: str) -> Values:
    rate = event.tax_basis_points
    found: Values = {"tax": "" if rate is None else percent_text(rate), "fees_shown": event.fees_shown.value}
    current = {tier.key: tier for tier in event.tiers}
    for number, key in enumerate(plan.tiers):
        tier = current.get(key)
        found[f"tier{number}"] = tier.name if tier and tier.name else key.capitalize()
        found[f"price{number}"] = money_text(tier.price.minor, event.currency) if tier else ""
    return found | fee_values(event.fees, event.currency, MOST_FEES)


def fee_values(fees: Sequence[Fee], currency: str, most: int) -> Values:
    """The lines of fees in a form."""
    found: Values = {}
    for number in range(most):
        fee = fees[number] if number < len(fees) else None
        found[f"fee{number}"] = fee.name if fee else ""
        found[f"seat{number}"] = money_text(fee.per_seat_minor, currency) if fee and fee.per_seat_minor else ""
        found[f"booking{number}"] = money_text(fee.per_booking_minor, currency) if fee and fee.per_booking_minor else ""
        found[f"percent{number}"] = percent_text(fee.basis_points) if fee and fee.basis_points else ""
    return found


def read_prices(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    colours = {tier.key: tier.colour for tier in event.tiers}
    tiers = []
    for number, key in enumerate(plan.tiers):
        price = Money(reading.money(f"price{number}", needed=True), event.currency)
        tiers.append(PriceTier(key, price, reading.text(f"tier{number}", 100, needed=False), colours.get(key, "")))
    fees = [fee for number in range(MOST_FEES) if (fee := read_fee(reading, number)) is not None]
    shown = reading.form.one("fees_shown", 20)
    return EventEdit(
        tiers=tuple(tiers),
        fees=tuple(fees),
        tax_basis_points=_tax(reading),
        fees_shown=FeesShown(shown) if shown in set(FeesShown) else None,
    )


def _tax(reading: Reading) -> int | None:
    """The event's own rate; an empty field is the seller's, a form without the field changes nothing."""
    if "tax" not in reading.form.first():
        return None
    points = reading.percent("tax", MAX_TAX_BASIS_POINTS, BAD_TAX)
    return points if reading.form.one("tax", 8) else SELLERS_TAX


def read_fee(reading: Reading, number: int) -> Fee | None:
    """One line of the fees; None for an empty one."""
    name = reading.text(f"fee{number}", 100, needed=False)
    seat, booking = reading.money(f"seat{number}"), reading.money(f"booking{number}")
    points = reading.percent(f"percent{number}")
    if not name and (seat or booking or points):
        reading.errors[f"fee{number}"] = NEEDED
    return Fee(name, seat, booking, points) if name else None


def sale(event: Event, plan: Plan, zone: str) -> Values:
    policy = event.refunds
    return {
        "sale_starts": local_text(event.sale_starts_at_us, zone),
        "sale_ends": local_text(event.sale_ends_at_us, zone),
        "max_per_person": str(event.max_per_person),
        "hold_min": str(max(1, -(-event.hold_ttl_s // 60))),
        "lonely": str(event.lonely_rule_until_percent),
        "card_tries": str(event.card_tries if event.card_tries > 1 else USUAL_CARD_TRIES),
        "first_decline": "yes" if event.card_tries == 1 else "",
        **{f"method_{one}": "yes" for one in event.payments.methods or METHOD_IDS},
        "pay_days": str(event.payments.pay_days),
        "days_before_show": str(event.payments.days_before_show),
        "slow_with_queue": "yes" if event.payments.slow_with_queue else "",
        "transfers": "yes" if event.transfers_allowed else "",
        "refunds": "yes" if policy.allowed else "",
        **_step_texts(policy),
        "keeps_seat_fees": "yes" if policy.keeps_seat_fees else "",
        "keeps_booking_fees": "yes" if policy.keeps_booking_fees else "",
        "refund_fee": money_text(policy.fee_per_seat_minor, event.currency) if policy.fee_per_seat_minor else "",
        "refund_percent": percent_text(policy.fee_basis_points) if policy.fee_basis_points else "",
    }


def read_sale(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    shown = sale(event, plan, "UTC")
    hold_min = reading.whole("hold_min", 1, MOST_HOLD_MIN)
    steps = _read_steps(reading)
    policy = RefundPolicy(
        bool(reading.form.one("refunds")),
        steps[0].until_s,
        reading.money("refund_fee"),
        reading.percent("refund_percent"),
        bool(reading.form.one("keeps_seat_fees")),
        bool(reading.form.one("keeps_booking_fees")),
        () if steps == (RefundStep(steps[0].until_s),) else steps,
    )
    return EventEdit(
        sale_starts_at_us=reading.when("sale_starts"),
        sale_ends_at_us=reading.when("sale_ends"),
        max_per_person=reading.whole("max_per_person", 1, MAX_PER_PERSON),
        hold_ttl_s=None if str(hold_min) == shown["hold_min"] else hold_min * 60,  # 90 s stay 90 s
        lonely_rule_until_percent=reading.whole("lonely", 0, 100),
        card_tries=1 if reading.form.one("first_decline") else reading.whole("card_tries", 1, MAX_CARD_TRIES),
        payments=_read_payments(reading, event),
        transfers_allowed=bool(reading.form.one("transfers")),
        refunds=policy,
    )


def _read_payments(reading: Reading, event: Event) -> PaymentRules:
    """The rules about paying. All methods that the form shows are no choice: later ones are offered, too."""
    shown = [one for one in reading.form.one("methods_shown", 400).split(",") if one in METHOD_IDS]
    chosen = tuple(one for one in shown if reading.form.one(f"method_{one}"))
    methods = event.payments.methods if not shown else () if len(chosen) == len(shown) else chosen
    if shown and not chosen:
        reading.errors["methods"] = NEEDED
    pay_days = reading.whole("pay_days", 0, MAX_PAY_DAYS)
    days_before = reading.whole("days_before_show", 0, MAX_DAYS_BEFORE)
    if days_before < pay_days and "pay_days" not in reading.errors:
        reading.errors.setdefault("days_before_show", PAID_BEFORE_SHOW)
    return PaymentRules(methods, pay_days, max(days_before, pay_days), bool(reading.form.one("slow_with_queue")))


def _step_texts(policy: RefundPolicy) -> Values:
    """The steps as the form shows them; the first field has no number. Without a share it is all."""
    texts: Values = {}
    for n in range(max(REFUND_ROWS, len(policy.all_steps))):
        row, step = str(n + 1) if n else "", policy.all_steps[n] if n < len(policy.all_steps) else None
        texts[f"refund_hours{row}"] = str(step.until_s // 3600) if step else ""
        texts[f"refund_share{row}"] = percent_text(step.basis_points) if step else ""
    return texts


def _read_steps(reading: Reading) -> tuple[RefundStep, ...]:
    """The steps, the earliest first: at least one. Rows without hours are left out."""
    steps = [RefundStep(reading.whole("refund_hours", 0, MOST_REFUND_H) * 3600, _share(reading, ""))]
    for n in range(2, MAX_REFUND_STEPS + 1):
        if reading.form.one(f"refund_hours{n}"):
            hours = reading.whole(f"refund_hours{n}", 0, MOST_REFUND_H)
            steps.append(RefundStep(hours * 3600, _share(reading, str(n))))
            if hours * 3600 >= steps[-2].until_s or steps[-1].basis_points >= steps[-2].basis_points:
                reading.errors.setdefault(f"refund_hours{n}", STEPS_FALL)
    return tuple(steps)


def _share(reading: Reading, row: str) -> int:
    """What a step refunds, in basis points; nothing said means all."""
    share = reading.percent(f"refund_share{row}") if reading.form.one(f"refund_share{row}") else BASIS_POINTS
    if not share:
        reading.errors.setdefault(f"refund_share{row}", STEPS_FALL)
    return max(1, share)


def room(event: Event, plan: Plan, zone: str) -> Values:
    """The waiting room; the event comes with its rules filled in."""
    lanes = event.room.lanes or (Lane("general"),)
    second = lanes[1] if len(lanes) > 1 else None
    return {
        "presale": local_text(event.presale_starts_at_us, zone),
        "share": str(lanes[0].weight),
        "code_lane": second.name if second else "",
        "code_share": str(second.weight if second else 1),
        "depth": str(event.room.depth_cap or 0),
        "human": event.room.human or "none",
        "one_place": "yes" if event.room.one_place_per_person else "",
        "rotating": "yes" if event.rotating_codes else "",
        "reentry": "yes" if event.reentry else "",
        "block_disputed": "yes" if event.block_disputed else "",
        "names_at_gates": "yes" if event.names_at_gates else "",
    }


def read_room(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    """What is fixed once published comes disabled and is not read then."""
    is_draft = event.status is EventStatus.DRAFT
    current = event.room.lanes or (Lane("general"),)
    lanes = [Lane(current[0].name, reading.whole("share", 1, MAX_WEIGHT))]
    presale_us = reading.when("presale", needed=False)
    second = reading.text("code_lane", 35, needed=False) if len(current) == 1 or is_draft else current[1].name
    if second or presale_us:
        lanes.append(Lane(second or PRESALE_LANE, reading.whole("code_share", 1, MAX_WEIGHT)))
    rules = RoomRules(
        lanes=tuple(lanes),
        depth_cap=reading.whole("depth", 0, MAX_DEPTH),
        human=reading.form.one("human", 20) or None,
        one_place_per_person=bool(reading.form.one("one_place")) if is_draft else None,
    )
    rotating = bool(reading.form.one("rotating")) if is_draft else None
    fixed = not is_draft and not reading.form.one("presale")  # disabled once it has begun, and while there is none
    return EventEdit(
        room=rules,
        rotating_codes=rotating,
        reentry=bool(reading.form.one("reentry")),
        block_disputed=bool(reading.form.one("block_disputed")),
        names_at_gates=bool(reading.form.one("names_at_gates")),
        presale_starts_at_us=None if fixed else presale_us,
    )


def seats(event: Event, plan: Plan, zone: str) -> Values:
    return {"withheld": format_seat_ranges(plan, event.withheld)}


def read_kept(reading: Reading, event: Event, plan: Plan) -> EventEdit:
    try:
        return EventEdit(withheld=tuple(parse_seat_ranges(plan, reading.form.one("withheld", MAX_SEATS_CHARS))))
    except InvalidInput as error:
        reading.errors["withheld"] = sentence_of(error)
        return EventEdit()


VALUES: Final[dict[str, Callable[[Event, Plan, str], Values]]] = {
    "details": details,
    "venue": venue,
    "prices": prices,
    "sale": sale,
    "room": room,
    "seats": seats,
}
READERS: Final[dict[str, Callable[[Reading, Event, Plan], EventEdit]]] = {
    "details": read_details,
    "venue": read_venue,
    "prices": read_prices,
    "sale": read_sale,
    "room": read_room,
    "seats": read_kept,
}
