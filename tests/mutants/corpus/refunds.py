"""Refunds and returns: what was paid goes back once, and no more."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "disputed money is refunded",
        "nothing is refunded that a bank has taken back",
        "boxoffice/refunds/payouts.py",
        "        if not is_disputed(disputes):\n",
        "        if True:\n",
        (
            "tests/boxoffice/payments/test_disputes.py::test_a_cancelled_event_waits_for_its_disputes_and_owes_nothing_for_what_was_lost",
        ),
    ),
    Mutant(
        "a half-finished return takes a ticket that was accepted",
        "a ticket belongs to whoever accepted it",
        "boxoffice/adapters/ledger/refunds/return_transactions.py",
        "    inside |= (yield from transferred_seats([booking_id])).get(booking_id, set())\n",
        "",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-a_return_that_was_not_finished_does_not_take_the_recipients_ticket]",
        ),
    ),
    Mutant(
        "a percentage fee rounded per seat",
        "a refund and what is kept of it add up",
        "boxoffice/refunds/model/refund_rules.py",
        "policy.fee_of(Money(left, booking.currency), len(choice.seats))",
        "sum(policy.fee_of(Money(paid.seats[seat], booking.currency), 1) for seat in choice.seats)",
        (
            "tests/boxoffice/refunds/test_refund_lines.py::test_a_percentage_is_kept_of_the_whole_refund_and_not_of_each_seat",
        ),
    ),
    Mutant(
        "a refund of who is inside",
        "a ticket is let in or refunded, never both",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        ("    if inside:\n        return TicketScanned(booking.id, sorted(inside))\n    if refund.reason"),
        "    if refund.reason",
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[a_ticket_that_was_let_in_is_not_refunded]",
        ),
    ),
    Mutant(
        "a refund that waits for money that never comes",
        "a refund names the newest payment",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        ('    if refund.payment_id != obstacles.newest.get(\n        booking.id, ""\n    ):'),
        "    if refund.payment_id is None:",
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[a_refund_names_the_newest_payment]",
        ),
    ),
    Mutant(
        "a refund of what was returned in between",
        "captured less refunded is what tickets cost",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        "if ask.seen is not None and ask.seen.worth_minor != booking.amount_minor:",
        "if ask.seen is not None and ask.seen.worth_minor < 0:",
        (
            "tests/boxoffice/refunds/test_refunds_by_line.py::test_a_refund_that_was_worked_out_before_a_return_is_worked_out_again[sqlite]",
        ),
    ),
    Mutant(
        "a refund after its last day",
        "the policy's last day counts",
        "boxoffice/refunds/model/refund_rules.py",
        "    if policy.step_at(event.starts_at_us, now_us) is None:\n",
        "    if policy is None:\n",
        ("tests/boxoffice/refunds/test_refund_lines.py::test_steps_refund_less_as_the_show_comes_nearer",),
    ),
    Mutant(
        "more kept than the refund is worth",
        "nobody pays for a refund",
        "boxoffice/refunds/model/refund_rules.py",
        "        amount = min(amount, left)\n",
        "",
        (
            "tests/boxoffice/refunds/test_refund_lines.py::test_any_sequence_of_refunds_gives_back_the_lines_and_keeps_the_rest",
        ),
    ),
    Mutant(
        "a group price kept by who breaks the group",
        "a group price needs a group",
        "boxoffice/refunds/model/refund_lines.py",
        "    due = _group_difference(lines, kept) if recheck_group else 0\n",
        "    due = 0\n",
        ("tests/boxoffice/refunds/test_refund_lines.py::test_a_seat_that_leaves_the_group_pays_the_price_without_it",),
    ),
    Mutant(
        "a refund paid again after a day",
        "money goes back once",
        "boxoffice/refunds/payouts.py",
        "if not refund.tries and self._clock() - refund.created_at_us < KEY_LIFETIME_US:",
        "if self._clock() - refund.created_at_us < 0 or not refund.ref:",
        ("tests/boxoffice/refunds/test_refunds.py::test_one_fault_in_a_refund_pays_back_exactly_once[error_after]",),
    ),
    Mutant(
        "seats of a partial refund stay taken",
        "a refunded seat is free",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        (
            '        yield Query("free_some_seats", [(booking_id, seat) for booking_id, seat, _ in seats])\n'
            '        yield Query("revoke_tickets", seats)\n'
        ),
        '        yield Query("revoke_tickets", seats)\n',
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[a_partial_refund_shrinks_the_booking]",
        ),
    ),
    Mutant(
        "tickets of a partial refund stay valid",
        "a refunded ticket admits nobody",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        '        yield Query("revoke_tickets", seats)\n',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[a_partial_refund_shrinks_the_booking]",
        ),
    ),
    Mutant(
        "used parking is lost to the organiser",
        "what was redeemed stays paid",
        "boxoffice/refunds/model/refund_rules.py",
        "most = paid.used_minor if left_minor is None else min(paid.used_minor, left_minor - worth)",
        "most = 0",
        (
            "tests/boxoffice/refunds/test_refund_rules.py::test_what_was_redeemed_stays_with_the_organiser_as_far_as_it_is_still_paid",
        ),
    ),
    Mutant(
        "fees of a cancelled event are kept",
        "nobody keeps anything of a cancelled event",
        "boxoffice/refunds/model/refund_rules.py",
        "by_policy and event.status is not EventStatus.CANCELLED",
        "by_policy",
        (
            "tests/boxoffice/refunds/test_refund_rules.py::test_what_a_policy_keeps_is_never_more_than_the_refund_is_worth",
        ),
    ),
)
