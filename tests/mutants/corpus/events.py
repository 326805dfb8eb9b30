"""Events: their status, their edits, and whose they are."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "the last edit wins",
        "nobody overwrites another's change",
        "boxoffice/adapters/ledger/organiser/organiser_statements.sql",
        ("FROM :rows WHERE e.id = r.id AND e.document = r.was_document\nRETURNING e.id\n\n-- name: add_cancellations"),
        ("FROM :rows WHERE e.id = r.id\nRETURNING e.id\n\n-- name: add_cancellations"),
        (
            "tests/boxoffice/organiser/test_organise.py::test_b13_of_fifty_edits_of_one_version_one_is_made_and_the_others_are_told[sqlite]",
        ),
    ),
    Mutant(
        "held seats count as sold out",
        "an event is sold out when everything is sold",
        "boxoffice/adapters/ledger/events/event_status.py",
        "        return None if held else EventMove.SELL_OUT\n",
        "        return EventMove.SELL_OUT\n",
        (
            "tests/boxoffice/adapters/ledger/test_event_status.py::test_b20_the_last_seat_sold_sells_out_and_a_refund_reopens[sqlite]",
        ),
    ),
    Mutant(
        "seats back on sale before the waitlist",
        "who waits comes first",
        "boxoffice/adapters/ledger/events/event_status.py",
        "        return None if waiting else EventMove.REOPEN\n",
        "        return EventMove.REOPEN\n",
        (
            "tests/boxoffice/adapters/ledger/test_event_status.py::test_b20_seats_that_somebody_waits_for_do_not_reopen_the_sale[sqlite]",
        ),
    ),
    Mutant(
        "sold seats are withheld",
        "a sold seat stays sold",
        "boxoffice/events/event_editing.py",
        ("        if taken:\n            refused = SeatsTaken(event.id, taken)"),
        ("        if len(taken) > 9_999:\n            refused = SeatsTaken(event.id, taken)"),
        ("tests/boxoffice/organiser/test_organise.py::test_b13_a_seat_that_somebody_has_cannot_be_withheld[sqlite]",),
    ),
    Mutant(
        "another organiser's venue",
        "a venue is its organiser's",
        "boxoffice/adapters/ledger/organiser/organiser_statements.sql",
        "WHERE v.id = :id AND v.organiser_id = :organiser_id\n",
        "WHERE v.id = :id AND :organiser_id <> ''\n",
        (
            "tests/boxoffice/organiser/test_organise.py::test_b13_a_venues_plan_comes_from_any_of_four_sources[sqlite-generator]",
        ),
    ),
    Mutant(
        "a cancelled event takes holds",
        "nothing of a cancelled event is held",
        "boxoffice/adapters/ledger/holds/hold_statements.sql",
        (
            "r.made_by, r.now_us, r.now_us, r.expires_at_us, r.price_lines\n"
            "FROM :rows WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.id = r.event_id AND e.event_state = 'cancelled')\n"
            "RETURNING id, fence"
        ),
        ("r.made_by, r.now_us, r.now_us, r.expires_at_us, r.price_lines\nFROM :rows WHERE true\nRETURNING id, fence"),
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[nothing_of_a_cancelled_event_is_held_or_sold]",
        ),
    ),
)
