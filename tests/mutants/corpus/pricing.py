"""Prices: every cent is accounted for, and codes work as often as they may."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "percentages rounded down",
        "percentages are rounded half up",
        "shared/money.py",
        "(exact + BASIS_POINTS // 2) // BASIS_POINTS",
        "exact // BASIS_POINTS",
        (
            "tests/boxoffice/pricing/test_prices.py::test_a_price_includes_the_fees_of_its_seat_and_says_how_much_they_are",
        ),
    ),
    Mutant(
        "a split that loses a cent",
        "splitting never loses a cent",
        "shared/money.py",
        ("    for i in order[: amount - sum(floors)]:\n        floors[i] += 1\n"),
        "",
        ("tests/shared/test_money.py::test_split_parts_add_up_and_differ_by_at_most_one_cent",),
    ),
    Mutant(
        "a fee per booking for every seat",
        "a fee per booking is paid once",
        "boxoffice/pricing/model/prices.py",
        "            total += self.booking_fees_minor\n",
        "            total += self.booking_fees_minor * len(seats)\n",
        (
            "tests/boxoffice/pricing/test_prices.py::test_a_price_includes_the_fees_of_its_seat_and_says_how_much_they_are",
        ),
    ),
    Mutant(
        "a code before its time",
        "a code is valid in its time",
        "boxoffice/pricing/model/discounts.py",
        "    if now_us < found.starts_at_us:\n",
        "    if now_us < 0:\n",
        (
            "tests/boxoffice/pricing/test_booking_choices.py::test_a_code_that_changes_nothing_says_why[LATE-49-seats1-not_yet]",
        ),
    ),
    Mutant(
        "a code at its end",
        "a code is valid in its time",
        "boxoffice/pricing/model/discounts.py",
        "if found.ends_at_us and now_us >= found.ends_at_us:",
        "if found.ends_at_us and now_us > found.ends_at_us:",
        (
            "tests/boxoffice/pricing/test_booking_choices.py::test_a_code_that_changes_nothing_says_why[late-60-seats2-expired]",
        ),
    ),
    Mutant(
        "a hidden ticket type without its code",
        "a hidden type needs its code",
        "boxoffice/pricing/model/booking_choices.py",
        "return tuple(one for one in event.ticket_types if not one.hidden or one.key in unlocked)",
        "return tuple(one for one in event.ticket_types if not one.hidden or unlocked is not None)",
        ("tests/boxoffice/pricing/test_booking_choices.py::test_a_hidden_ticket_type_is_sold_with_its_code_only",),
    ),
    Mutant(
        "a code used again and again by one person",
        "a code is used as often per person as it may be",
        "boxoffice/adapters/ledger/pricing/booking_choices.py",
        "sum(row[2] == booking.fan for row in live) >= use.most_per_person",
        "sum(row[2] == booking.fan for row in live) > use.most_per_person",
        (
            "tests/boxoffice/adapters/ledger/test_booking_choices.py::test_a_limit_per_person_counts_the_bookings_of_one_fan[sqlite]",
        ),
    ),
    Mutant(
        "sold for nothing while it costs something",
        "a free sale is of something free",
        "boxoffice/adapters/ledger/pricing/booking_choices.py",
        "    if booking is not None and booking.amount_minor and booking.state is not BookingState.CONFIRMED:\n",
        "    if booking is None and not rows and ask is None:\n",
        (
            "tests/boxoffice/adapters/ledger/test_booking_choices.py::test_nothing_is_paid_with_an_amount_that_the_choice_has_changed[sqlite]",
        ),
    ),
)
