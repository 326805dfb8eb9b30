"""The waitlist: offers in order, to who wants them, for a bounded time."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "offers while the sale is paused",
        "a paused sale sells nothing",
        "boxoffice/waitlist/offers.py",
        "if event.status not in HAS_WAITLIST or event.paused or not in_sale:",
        "if event.status not in HAS_WAITLIST or not in_sale:",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_nothing_is_offered_while_the_sale_is_paused",),
    ),
    Mutant(
        "an offer of another fan is claimed",
        "an offer is one fan's",
        "boxoffice/adapters/ledger/waitlist/waitlist_transactions.py",
        "    if not rows or rows[0][3] != fan:  # the offer of another fan answers 404",
        "    if not rows:",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_an_offer_passes_on_until_somebody_claims_it",),
    ),
    Mutant(
        "unanswered offers without end",
        "an entry leaves the line after its last lapse",
        "boxoffice/waitlist/model/offers.py",
        "if move is OfferMove.LAPSE and lapses + 1 >= MAX_LAPSES:",
        "if move is OfferMove.LAPSE and lapses > MAX_LAPSES:",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_an_offer_passes_on_until_somebody_claims_it",),
    ),
    Mutant(
        "who declines loses the place",
        "declining keeps the place in line",
        "boxoffice/waitlist/model/offers.py",
        "    if move is OfferMove.WITHDRAW:\n",
        "    if move in (OfferMove.WITHDRAW, OfferMove.DECLINE):\n",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_an_offer_passes_on_until_somebody_claims_it",),
    ),
    Mutant(
        "the same seat offered to who let it go",
        "nobody is offered a seat that they had last",
        "boxoffice/waitlist/model/waitlist_matching.py",
        "masks = self._without(self._masks(wish), self._had.get(entry.fan, ()))",
        "masks = self._without(self._masks(wish), ())",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_an_offer_passes_on_until_somebody_claims_it",),
    ),
    Mutant(
        "a party that is split against its will",
        "a party is never split unless it agreed",
        "boxoffice/waitlist/model/waitlist_matching.py",
        "worst = Grade.APART if entry.split_ok else Grade.SAME_ROW",
        "worst = Grade.APART",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_the_line_is_served_past_everybody_who_does_not_fit",),
    ),
    Mutant(
        "withheld seats offered",
        "a withheld seat is nobody's",
        "boxoffice/waitlist/waitlist_entries.py",
        ("    for seat in sale.event.withheld:\n        states[seat] = 1\n"),
        "",
        (
            "tests/boxoffice/waitlist/test_waitlist_service.py::test_a_seat_that_is_not_sold_is_offered_to_nobody[withheld]",
        ),
    ),
    Mutant(
        "offers over the cap",
        "caps per person",
        "boxoffice/waitlist/offers.py",
        ("            event.max_per_person,\n            price_lines"),
        ("            None,\n            price_lines"),
        (
            "tests/boxoffice/waitlist/test_waitlist_service.py::test_a_fan_at_the_cap_is_passed_over_and_the_next_is_served",
        ),
    ),
    Mutant(
        "offers after the sale ended",
        "an event is sold in its time",
        "boxoffice/waitlist/offers.py",
        "in_sale = event.sale_starts_at_us <= now_us < event.sale_ends_at_us",
        "in_sale = event.sale_starts_at_us <= now_us",
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_a_seat_that_is_not_sold_is_offered_to_nobody[over]",),
    ),
    Mutant(
        "a declined offer keeps its seats",
        "a declined seat is free at once",
        "boxoffice/adapters/ledger/waitlist/waitlist_transactions.py",
        (
            "(moved,) = yield from make_moves([MakeMove(offer.booking_id, Move.RELEASE, offer.fence, now_us)], facts)\n"
            "    if isinstance(moved, BaseException):  # it is being paid for"
        ),
        ("moved = offer\n    if isinstance(moved, BaseException):  # it is being paid for"),
        ("tests/boxoffice/waitlist/test_waitlist_service.py::test_an_offer_passes_on_until_somebody_claims_it",),
    ),
    Mutant(
        "the line out of order",
        "the line is served in its order",
        "boxoffice/adapters/ledger/waitlist/waitlist_statements.sql",
        ("ORDER BY w.rank, w.number LIMIT :limit\n\n-- name: line_of_event"),
        ("ORDER BY w.rank, w.number DESC LIMIT :limit\n\n-- name: line_of_event"),
        (
            "tests/boxoffice/waitlist/test_waitlist_service.py::test_a_freed_seat_is_offered_to_the_next_in_line[by_refund-facts]",
        ),
    ),
    Mutant(
        "seats go to the public while people wait",
        "who waits comes first",
        "boxoffice/waitlist/offers.py",
        ("        if not pool.free:\n            await self._set_status(sale, EventStatus.SOLD_OUT)"),
        ("        if pool.free < 0:\n            await self._set_status(sale, EventStatus.SOLD_OUT)"),
        (
            "tests/boxoffice/waitlist/test_waitlist_service.py::test_a_freed_seat_is_offered_to_the_next_in_line[by_refund-facts]",
        ),
    ),
)
