"""Payments: money is taken once, for what was sold, or not at all."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "the mail about a transfer is not written with the longer hold",
        "who chose a transfer is told where the money goes",
        "boxoffice/payments/payment_driver.py",
        "Move.EXTEND, booking, facts, expires_at_us=until_us)",
        "Move.EXTEND, booking, expires_at_us=until_us)",
        (
            "tests/boxoffice/messages/test_transfer_mails.py::test_reloads_notices_and_turns_of_the_worker_send_no_second_mail",
        ),
    ),
    Mutant(
        "the last column of a payment is not read",
        "the platform gets its fee",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        "rest = (*row[7:23], ",
        "rest = (*row[7:22], 0, ",
        (
            "tests/boxoffice/payments/test_own_accounts.py::test_the_fee_is_taken_also_by_the_worker_that_begins_the_payment_later",
        ),
    ),
    Mutant(
        "a declined card of before cancels what a later card paid",
        "what is paid is sold",
        "boxoffice/payments/payment_driver.py",
        "superseded=latest.id != payment.id))[1]",
        "superseded=False))[1]",
        (
            "tests/boxoffice/payments/test_declines.py::test_a_declined_card_of_before_does_not_cancel_what_a_later_card_paid[webhook]",
        ),
    ),
    Mutant(
        "the object of a declined card of before still takes cards",
        "nobody is charged twice",
        "boxoffice/checkout/checkout.py",
        "                await self.driver.drive_any(payment)\n            await self.driver",
        "                await self.records.save(self.records.reschedule(payment))\n            await self.driver",
        (
            "tests/boxoffice/payments/test_declines.py::test_a_declined_card_of_before_does_not_cancel_what_a_later_card_paid[worker]",
        ),
    ),
    Mutant(
        "the fact of a late payment is lost after a conflict",
        "who paid too late is told once",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        (
            "        if payment.id in written:\n"
            "            facts.extend(asks[at].facts)\n"
            "        old = kept.get(payment.id)"
        ),
        "        old = kept.get(payment.id)",
        (
            "tests/boxoffice/payments/test_late_payments.py::test_who_paid_too_late_is_told_although_another_driver_wrote_first",
        ),
    ),
    Mutant(
        "after a conflict the provider is not read again",
        "who paid too late is told once",
        "boxoffice/payments/payment_driver.py",
        "payment, fresh = await self._records.reload_payment(payment), False",
        "payment, fresh = await self._records.reload_payment(payment), True",
        (
            "tests/boxoffice/payments/test_late_payments.py::test_who_paid_too_late_is_told_although_another_driver_wrote_first",
        ),
    ),
    Mutant(
        "the fact of late money is not written with its refund",
        "who paid too late is told once",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        "facts.extend(ask.facts if ask.refund.id in added else ())",
        "facts.extend(())",
        (
            "tests/boxoffice/payments/test_late_payments.py::test_late_money_that_goes_back_is_told_although_another_driver_wrote_first",
        ),
    ),
    Mutant(
        "a refused capture keeps its reservation",
        "at rest no card has money reserved",
        "boxoffice/payments/provider_calls.py",
        (
            '                await self._providers.of(payment).void(payment.ref, payment.key("void"))\n'
            "                updated = await self._save("
        ),
        "                updated = await self._save(",
        (
            "tests/boxoffice/payments/test_late_payments.py::test_captures_that_are_refused_leave_no_money_reserved_on_the_card",
        ),
    ),
    Mutant(
        "a second card after the last decline",
        "cards are declined as often as the event allows",
        "boxoffice/payments/model/card_declines.py",
        "return tries > 0 and (reason in MISTYPED or declines < tries)",
        "return tries > 0",
        ("tests/boxoffice/checkout/test_checkout.py::test_a_declined_card_frees_the_seats_at_once",),
    ),
    Mutant(
        "money captured before the sale",
        "no capture unless confirmed",
        "boxoffice/payments/model/payment_saga.py",
        ("    return PaymentStep.CAPTURE if sold else PaymentStep.VOID\n\n\ndef _capturing"),
        ("    return PaymentStep.CAPTURE\n\n\ndef _capturing"),
        (
            "tests/boxoffice/payments/test_payment_saga.py::test_every_cell_is_decided_and_the_number_of_tries_decides_nothing",
        ),
    ),
    Mutant(
        "authorised without end",
        "a capture that fails is tried three times",
        "boxoffice/payments/model/payment_saga.py",
        "if payment.method and payment.attempt < MAX_ATTEMPTS else",
        "if payment.method and payment.attempt <= MAX_ATTEMPTS else",
        (
            "tests/boxoffice/payments/test_payment_saga.py::test_what_the_provider_may_have_is_voided_and_a_declined_object_is_dropped",
        ),
    ),
    Mutant(
        "late money is kept",
        "money for a booking that is over goes back",
        "boxoffice/payments/model/payment_saga.py",
        "return PaymentStep.REST if sold or booking.state is BookingState.REFUNDED else PaymentStep.RETURN",
        "return PaymentStep.REST",
        (
            "tests/boxoffice/payments/test_payment_saga.py::test_every_cell_is_decided_and_the_number_of_tries_decides_nothing",
        ),
    ),
    Mutant(
        "a payment of another amount",
        "a booking is paid with what it costs",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        "if costs.get(one.booking_id) != one.amount_minor",
        "if one.booking_id not in costs",
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[a_new_attempt_is_for_what_the_booking_costs_now]",
        ),
    ),
    Mutant(
        "a version written over another",
        "each save is a compare and set",
        "boxoffice/adapters/ledger/payments/payment_statements.sql",
        "WHERE p.id = r.id{ AND p.event_id = d.event_id} AND p.version = r.version - 1\n",
        "WHERE p.id = r.id{ AND p.event_id = d.event_id}\n",
        (
            "tests/boxoffice/adapters/ledger/test_payment_book.py::test_payments_on_sqlite[facts_are_written_with_the_payment_or_not_at_all]",
        ),
    ),
    Mutant(
        "seats kept after a decline",
        "a failed payment frees its seats",
        "boxoffice/payments/payment_driver.py",
        (
            "        ended = await self._records.save(moved, move, booking, reason=reason)\n"
            "        assert ended is not None\n"
            "        await self._free(ended)\n"
            "        return ended, moved\n"
            "\n"
            "    async def _free"
        ),
        (
            "        ended = await self._records.save(moved, move, booking, reason=reason)\n"
            "        assert ended is not None\n"
            "        return ended, moved\n"
            "\n"
            "    async def _free"
        ),
        ("tests/web/api/test_purchase.py::test_b9_the_last_declined_card_frees_the_seats_at_once",),
    ),
    Mutant(
        "a retry after the hold's end",
        "a payment is tried again before its hold ends",
        "boxoffice/payments/payment_driver.py",
        "if booking.state in HOLD_STATES and now_us < booking.hold_expires_at_us < later.retry_at_us:",
        "if booking.state not in HOLD_STATES:",
        (
            "tests/boxoffice/checkout/test_checkout.py::test_one_fault_anywhere_charges_exactly_once[capture-lost_request]",
        ),
    ),
    Mutant(
        "a hold whose price another server changed is paid at its old price",
        "what is paid is what it costs",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        (
            "        if isinstance(booking, BaseException) or (\n"
            "            payment.version == 1 and booking.amount_minor != payment.amount_minor\n"
            "        ):\n"
        ),
        "        if isinstance(booking, BaseException):\n",
        (
            "tests/boxoffice/checkout/test_paying_unread.py::test_paying_unread_ends_as_paying_what_was_read[sqlite-dearer]",
        ),
    ),
    Mutant(
        "a hold that counts in a shared limit is paid as it was before somebody chose again",
        "codes and stocks within their limits",
        "boxoffice/checkout/purchases.py",
        "if event is None or event.payments.methods or _counts_uses(event):",
        "if event is None or event.payments.methods:",
        (
            "tests/boxoffice/checkout/test_paying_unread.py::test_what_decides_before_the_first_write_is_read[a shared limit]",
        ),
    ),
)
