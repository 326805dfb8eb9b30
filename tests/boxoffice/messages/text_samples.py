"""A value for each placeholder that the texts of messages use."""

from frontrow.boxoffice.texts.locale_formats import Moment
from frontrow.core.clock import US_PER_S
from frontrow.shared.money import Money

SHOW = Moment(1_780_680_600 * US_PER_S, "Europe/Vienna")  # Friday 5 June 2026, 19:30 in Vienna
ABOUT = {
    "reason": "lost_or_stolen_card",
    "sender": "Ada",
    "recipient": "grace@example.org",
    "event_name": "Aurora",
    "booking_id": "bkg_1",
    "when": SHOW,
    "place": "Stadthalle, Wien",
    "amount": Money(1_234_50, "EUR"),
    "seats": ("A-1-12", "A-1-13"),
    "seat_count": 2,
    "until": SHOW,
    "minutes": 15,
    "hours": 72,
    "presale": SHOW,
    "general_sale": SHOW,
    "code": "VF-1",
    "end_url": "https://x.example/end",
    "days": "Friday 5 June 2026",
    "tickets_sold": 3,
    "refunded": Money(0, "EUR"),
    "all_sold": "30",
    "all_seats": "56",
    "net": Money(1_500_00, "EUR"),
    "organiser": "Stadthalle",
    "iban": "DE89370400440532013000",
    "bic": "COBADEFFXXX",
    "holder": "Stadthalle Wien",
    "reference": "FR-4711",
    "written_subject": "Another entrance",
}
