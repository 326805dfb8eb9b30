"""What is played: a room, a small sale and the fans who come to it. `Scene()` is the one that `make simulate` plays."""

from dataclasses import dataclass
from typing import Final

from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import Event, EventStatus, Fee, PriceTier
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, SharedLimit, TicketType
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, area
from frontrow.core.errors import ConfigError
from frontrow.limits import Quota
from frontrow.shared.money import Money
from frontrow.simulation.loop import BEGIN_US
from frontrow.waitingroom.model.config import RoomConfig

EVENT: Final = "evt_sim"
ADA: Final = Editor("stf_ada", "org_default")
MOST: Final = 1  # of the event's stock and shared limit
CODE_USES: Final = 2  # of the code, one per person
SHARED_PER_PERSON: Final = Quota.parse("3/minute", algorithm="sliding_log")  # requests to hold, over all servers
DAY_US: Final = 86_400_000_000
IN_A_ROW: Final = 3
ROOM: Final = RoomConfig(
    capacity=4,
    window_size=2,
    interval_us=1_000_000,
    rate_per_s=1,
    burst=2,
    pass_ttl_s=90,
    max_stay_s=400,
    grace_us=60_000_000,
    draw_salt="salt",
)


# Ways of paying whose money comes without a reservation: at once from the bank's page, or later.
AT_ONCE: Final = ("ideal", "bank_transfer")


@dataclass(frozen=True, slots=True)
class Scene:
    """The settings of a history. Times are virtual."""

    room: RoomConfig = ROOM
    per_person: str = "4/minute"  # requests to hold seats; few, so that fans reach it
    fans: int = 6
    seats: int = 12  # a quarter of them standing places, the others in rows of three
    lasts_s: int = 240  # until everything is healed
    hold_s: int = 60
    card_tries: int = 1
    max_per_person: int = 4
    refund_fee_minor: int = 200
    fault_rate: float | None = None  # the share of calls that go wrong; none: each seed has its own

    def __post_init__(self) -> None:
        """Larger histories prove no more and take too long; smaller ones reach nothing."""
        for name, low, high in (
            ("fans", 1, 100),
            ("seats", 4, 400),
            ("lasts_s", 10, 86_400),
            ("hold_s", 10, 3_600),
            ("card_tries", 1, 5),
            ("max_per_person", 1, 100),
            ("refund_fee_minor", 0, 3_000),
        ):
            value = getattr(self, name)
            if not (isinstance(value, int) and low <= value <= high):
                raise ConfigError(f"{name} must be a number from {low} to {high:,}, not {value!r}", param=name)
        if self.fault_rate is not None and not 0 <= self.fault_rate <= 0.5:
            raise ConfigError(f"fault_rate must be from 0 to 0.5, not {self.fault_rate!r}", param="fault_rate")
        Quota.parse(self.per_person)

    def plan(self) -> Plan:
        """Two thirds of the rows in section A, the others in B, and the standing area S. Seats are numbered in this
        order."""
        standing = max(1, self.seats // 4)
        rows = [
            Row(f"{row}", tuple(Seat(f"{seat}") for seat in range(1, IN_A_ROW + 1)), rank=row)
            for row in range(1, max(1, (self.seats - standing) // IN_A_ROW) + 1)
        ]
        front = len(rows) - len(rows) // 3
        sections = [Section("A", tuple(rows[:front]))]
        if len(rows) > front:
            sections.append(Section("B", tuple(rows[: len(rows) - front]), rank=1))
        return Plan("small", (*sections, area("S", standing)))

    def event(self, plan_hash: str, *, limited: bool = True) -> Event:
        """The event on sale, with a type, an add-on, a code and, if `limited`, a limit for one booking alone."""
        return Event(
            id=EVENT,
            name="Aurora",
            venue_id="ven_1",
            plan_hash=plan_hash,
            currency="EUR",
            starts_at_us=BEGIN_US + 10 * DAY_US,
            sale_starts_at_us=BEGIN_US - DAY_US,
            sale_ends_at_us=BEGIN_US + 9 * DAY_US,
            tiers=(PriceTier("standard", Money(5000, "EUR")), PriceTier("standing", Money(3000, "EUR"))),
            status=EventStatus.ON_SALE,
            fees=(Fee("service", per_seat_minor=100, per_booking_minor=150),),
            max_per_person=self.max_per_person,
            hold_ttl_s=self.hold_s,
            lonely_rule_until_percent=0,
            card_tries=self.card_tries,
            payments=PaymentRules(pay_days=1, days_before_show=1, slow_with_queue=True),
            refunds=RefundPolicy(fee_per_seat_minor=self.refund_fee_minor),
            ticket_types=(TicketType("adult", "Adult"), TicketType("child", "Child", 5000)),
            add_ons=(AddOn("parking", "Parking", 700, stock=MOST, max_per_booking=2),),
            discounts=(Discount("TEN", 1000, most_uses=CODE_USES, most_per_person=1),),
            limits=(SharedLimit("children", "Children", MOST, ("type:child",)),) if limited else (),
        )
