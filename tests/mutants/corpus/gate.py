"""The gate: who is let in."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a revoked ticket is let in",
        "an old ticket code never admits",
        "boxoffice/gate/gate_check.py",
        ("        if ticket.id in self._revoked:\n            return GateVerdict.REVOKED, ticket\n"),
        "",
        (
            "tests/boxoffice/gate/test_gate_check.py::test_a_newer_revocation_list_kills_a_ticket_and_only_a_signed_one_counts",
        ),
    ),
    Mutant(
        "a forged ticket is let in",
        "only signed tickets admit",
        "boxoffice/gate/gate_check.py",
        (
            "        if not self._keys.signed(ticket.kid, signed_text(ticket.body), ticket.signature):\n"
            "            return GateVerdict.FORGED, None\n"
            "        if self.bundle.block_disputed"
        ),
        "        if self.bundle.block_disputed",
        ("tests/boxoffice/gate/test_gate_check.py::test_a_ticket_that_somebody_else_signed_is_forged_at_every_gate",),
    ),
    Mutant(
        "a ticket is let in twice",
        "a ticket admits once",
        "boxoffice/adapters/ledger/organiser/organiser_statements.sql",
        "  AND (t.scanned_at_us IS NULL OR (r.again = 1 AND t.left_at_us IS NOT NULL))\n",
        "\n",
        (
            "tests/boxoffice/organiser/test_gate_api.py::test_b10_a_scan_is_answered_ok_duplicate_revoked_wrong_event_or_forged",
        ),
    ),
    Mutant(
        "an older ticket of a seat that was resold",
        "the newest ticket of a seat admits",
        "boxoffice/gate/gate_check.py",
        "self._newest.get(ticket.seat_index, 0) > ticket.fence:",
        "self._newest.get(ticket.seat_index, 0) < 0:",
        (
            "tests/boxoffice/gate/test_gate_check.py::test_an_older_ticket_of_a_seat_stays_outside_once_a_newer_one_came_in",
        ),
    ),
    Mutant(
        "a picture of a rotating code",
        "a rotating code lives for a moment",
        "boxoffice/gate/gate_check.py",
        "    return GateVerdict.WELCOME if fits else GateVerdict.OLD_CODE\n",
        "    return GateVerdict.WELCOME\n",
        (
            "tests/boxoffice/organiser/test_gate_api.py::test_b10_the_number_of_a_ticket_with_a_rotating_code_lets_nobody_in",
        ),
    ),
    Mutant(
        "an add-on is handed out again and again",
        "an add-on is handed out as often as it was bought",
        "boxoffice/gate/model/redemptions.py",
        "if quantity <= found.left else",
        "if quantity <= found.bought else",
        (
            "tests/boxoffice/adapters/ledger/test_redemption_book.py::test_redemption_book[sqlite-of_many_gates_as_many_hand_out_as_were_bought]",
        ),
    ),
    Mutant(
        "an undone redemption still counts",
        "what was undone may be handed out again",
        "boxoffice/gate/model/redemptions.py",
        "        return not self.refused and self.undone_at_us is None",
        "        return not self.refused",
        (
            "tests/boxoffice/adapters/ledger/test_redemption_book.py::test_redemption_book[sqlite-an_undone_redemption_may_be_made_again_under_a_new_id]",
        ),
    ),
)
