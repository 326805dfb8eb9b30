"""Disputes: what a bank has taken back is not given a second time."""

from tests.mutants.mutant import Mutant

TESTS = "tests/boxoffice/payments/test_disputes.py"

MUTANTS = (
    Mutant(
        "a refund that was asked before a dispute is paid during it",
        "disputed money is never refunded",
        "boxoffice/refunds/payouts.py",
        "        if not is_disputed(disputes):\n            return True\n",
        "        return True\n",
        (f"{TESTS}::test_a_refund_that_was_asked_before_waits_and_is_paid_once_the_dispute_is_won",),
    ),
    Mutant(
        "a lost dispute leaves the whole payment to refund",
        "what was lost is never refunded",
        "boxoffice/refunds/payouts.py",
        "payment.amount_minor - disputed_minor(disputes, payment.ref) - given",
        "payment.amount_minor - given",
        (f"{TESTS}::test_what_was_lost_is_never_refunded_and_the_rest_of_a_payment_is",),
    ),
    Mutant(
        "a dispute that has ended opens again",
        "late and reordered notices change nothing",
        "boxoffice/payments/model/disputes.py",
        "    DisputeState.LOST: frozenset(),\n",
        "    DisputeState.LOST: frozenset({DisputeState.OPEN}),\n",
        (f"{TESTS}::test_every_notice_in_every_state_does_what_the_table_says",),
    ),
    Mutant(
        "lost money is the organiser's again",
        "what was lost is never refunded",
        "boxoffice/payments/model/disputes.py",
        "AGAINST: Final = frozenset({DisputeState.OPEN, DisputeState.LOST})",
        "AGAINST: Final = frozenset({DisputeState.OPEN})",
        (f"{TESTS}::test_what_was_lost_is_never_refunded_and_the_rest_of_a_payment_is",),
    ),
    Mutant(
        "late money goes back while the bank takes it",
        "disputed money is never refunded",
        "boxoffice/payments/provider_calls.py",
        "        if any(one.state is DisputeState.OPEN for one in disputes):\n",
        "        if any(one.state is DisputeState.CLOSED for one in disputes):\n",
        (f"{TESTS}::test_money_for_a_payment_the_fan_left_waits_for_its_dispute[won-5000]",),
    ),
    Mutant(
        "late money that was lost goes back as well",
        "what was lost is never refunded",
        "boxoffice/payments/provider_calls.py",
        "intent.captured_minor - intent.refunded_minor - disputed_minor(disputes, payment.ref)",
        "intent.captured_minor - intent.refunded_minor",
        (f"{TESTS}::test_money_for_a_payment_the_fan_left_waits_for_its_dispute[lost-0]",),
    ),
    Mutant(
        "the reconciler refunds a disputed object of nobody",
        "disputed money is never refunded",
        "boxoffice/checkout/reconciliation.py",
        "if left and is_disputed(await self._ledger.payments.disputes_of_ref(payee.provider, intent.ref)):",
        "if left < 0 and is_disputed(await self._ledger.payments.disputes_of_ref(payee.provider, intent.ref)):",
        (f"{TESTS}::test_the_reconciler_names_the_sums_and_refunds_no_disputed_object_of_nobody",),
    ),
)
