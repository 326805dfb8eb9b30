"""Holds: one owner per seat, for a bounded time."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a hold extended without end",
        "a hold lasts at most twice its time",
        "boxoffice/holds/model/holds.py",
        "end_us = min(now_us + hold_us, booking.created_at_us + MAX_HOLD_FACTOR * hold_us)",
        "end_us = now_us + hold_us",
        ("tests/boxoffice/holds/test_hold_extension.py::test_a_hold_that_is_extended_thirty_times_ends_all_the_same",),
    ),
    Mutant(
        "only the newest fence confirms, or any",
        "only the newest fence confirms",
        "boxoffice/adapters/ledger/holds/hold_statements.sql",
        " AND b.fence = r.fence AND b.state = r.from_state\n",
        " AND b.state = r.from_state\n",
        ("tests/boxoffice/adapters/ledger/test_contract.py::test_ledger[sqlite-only_the_fence_of_the_hold_moves_it]",),
    ),
    Mutant(
        "a payment confirmed at the hold's end",
        "a hold ends at its instant",
        "boxoffice/adapters/ledger/holds/hold_statements.sql",
        "AND (r.needs_live = 0 OR b.hold_expires_at_us > r.now_us)\n",
        "AND (r.needs_live = 0 OR b.hold_expires_at_us >= r.now_us)\n",
        (
            "tests/boxoffice/adapters/ledger/test_contract.py::test_ledger[sqlite-a_confirm_succeeds_until_the_hold_ends_and_not_at_that_instant]",
        ),
    ),
    Mutant(
        "a booking sold without all its seats",
        "a booking is sold with all its seats",
        "boxoffice/adapters/ledger/holds/hold_statements.sql",
        "    OR (b.seat_count = (SELECT coalesce(sum(s.active), 0) FROM booking_seats AS s",
        "    OR (b.seat_count >= (SELECT coalesce(sum(s.active), 0) FROM booking_seats AS s",
        ("tests/faults/test_three_layers.py::test_with_one_layer_off_the_other_two_still_hold[where]",),
    ),
    Mutant(
        "a key that makes two bookings",
        "one key makes one booking",
        "boxoffice/holds/hold_service.py",
        "        scoped_key = f\"{shop_pass.event_id}\\n{check_name(shop_pass.fan, 'fan')}\\n{key}\".encode()",
        "        scoped_key = f\"{shop_pass.event_id}\\n{check_name(shop_pass.fan, 'fan')}\\n{key}{self._ids.new('bkg')}\".encode()",
        ("tests/boxoffice/holds/test_hold_service.py::test_the_same_idempotency_key_is_the_same_hold",),
    ),
    Mutant(
        "a pass of another event",
        "every hold needs a pass of its event",
        "boxoffice/holds/hold_service.py",
        "if shop_pass is None or shop_pass.event_id != event_id:",
        "if shop_pass is None:",
        ("tests/boxoffice/holds/test_hold_service.py::test_nothing_works_without_a_living_pass_for_this_event",),
    ),
    Mutant(
        "a pass that ended",
        "every hold needs a live pass",
        "boxoffice/holds/hold_service.py",
        "        if now_us >= shop_pass.expires_at_us:\n",
        "        if now_us > shop_pass.expires_at_us:\n",
        ("tests/boxoffice/holds/test_hold_service.py::test_nothing_works_without_a_living_pass_for_this_event",),
    ),
    Mutant(
        "a changed hold over the cap",
        "caps per person",
        "boxoffice/adapters/ledger/holds/hold_changes.py",
        "    if others + len(wish.seats) <= wish.cap:\n",
        "    if len(wish.seats) <= wish.cap:\n",
        (
            "tests/boxoffice/adapters/ledger/test_contract.py::test_ledger[sqlite-a_refused_change_leaves_the_hold_as_it_was]",
        ),
    ),
    Mutant(
        "a changed hold that keeps new seats it did not get",
        "a hold is changed whole or not at all",
        "boxoffice/adapters/ledger/holds/hold_changes.py",
        ('    if missing and got:\n        yield Query("drop_seats"'),
        ('    if missing and not got:\n        yield Query("drop_seats"'),
        (
            "tests/boxoffice/adapters/ledger/test_clashes.py::test_of_two_holds_that_change_to_overlapping_seats_one_stays_as_it_was",
        ),
    ),
    Mutant(
        "a visit that bought goes on buying",
        "a visit ends with its purchase",
        "boxoffice/adapters/ledger/holds/hold_transactions.py",
        "                self.answers[at] = VisitEnded(self.wishes[at].event_id)\n",
        "                pass\n",
        (
            "tests/boxoffice/adapters/ledger/test_contract.py::test_ledger[sqlite-a_visit_that_has_bought_tickets_holds_no_more_seats]",
        ),
    ),
    Mutant(
        "what a repeated request was answered is remembered as the hold",
        "a server remembers holds as the ledger has them",
        "boxoffice/holds/recent_holds.py",
        "        if placed.repeated:\n            return\n",
        "",
        ("tests/boxoffice/holds/test_recent_holds.py::test_a_hold_that_was_there_before_is_not_remembered[sqlite]",),
    ),
)
