"""Transfers: a ticket is one person's at a time."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "another's transfer withdrawn through my booking",
        "only the sender withdraws",
        "boxoffice/tickets/ticket_transfers.py",
        "if transfer is None or transfer.booking_id != booking.id:",
        "if transfer is None:",
        (
            "tests/boxoffice/tickets/test_ticket_transfers.py::test_nobody_withdraws_anothers_transfer_through_a_booking_of_their_own",
        ),
    ),
    Mutant(
        "a transfer accepted after the show began",
        "a ticket changes hands before the show",
        "boxoffice/tickets/ticket_transfers.py",
        ("        check_transferable(event, now_us)\n        old, booking = ("),
        "        old, booking = (",
        ("tests/boxoffice/tickets/test_ticket_transfers.py::test_nobody_accepts_a_ticket_after_the_show_began",),
    ),
    Mutant(
        "the old code of a transferred ticket lives on",
        "an old ticket code never admits",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        '    yield Query("add_dead_tickets", [dead])\n',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-one_of_many_who_accept_makes_the_new_ticket_and_the_old_one_is_dead]",
        ),
    ),
    Mutant(
        "a ticket on its way to two people",
        "a ticket is on its way to one person",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        "    if waiting is not None and waiting.open(now_us):\n",
        "    if waiting is not None and waiting.open(now_us) and waiting.email == new.email:\n",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-only_a_valid_unused_ticket_of_the_sender_can_be_sent]",
        ),
    ),
    Mutant(
        "a ticket that was let in is sent",
        "a used ticket stays used",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        "    if ticket[2] is not None:\n",
        "    if ticket[2] == 0:\n",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-only_a_valid_unused_ticket_of_the_sender_can_be_sent]",
        ),
    ),
    Mutant(
        "a ticket that somebody else has is sent",
        "a ticket is sent by who has it",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        "if ticket is None or ticket[0] != new.ticket_id or ticket[3] != new.from_transfer:",
        "if ticket is None or ticket[0] != new.ticket_id:",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-only_a_valid_unused_ticket_of_the_sender_can_be_sent]",
        ),
    ),
    Mutant(
        "a transfer accepted after its end",
        "a transfer ends at its instant",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        ('    if not transfer.open(ask.now_us):\n        return TransferRefused(OVER, reason="over")\n'),
        ('    if transfer.state is TransferState.WITHDRAWN:\n        return TransferRefused(OVER, reason="over")\n'),
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-only_a_valid_unused_ticket_of_the_sender_can_be_sent]",
        ),
    ),
    Mutant(
        "a withdrawn transfer accepted",
        "a withdrawn transfer is over",
        "boxoffice/tickets/model/ticket_transfers.py",
        "return self.state is TransferState.SENT and now_us < self.expires_at_us",
        "return now_us < self.expires_at_us",
        ("tests/web/site/test_transfer_pages.py::test_who_received_a_ticket_sends_it_on_only_with_the_proven_address",),
    ),
    Mutant(
        "mails to an address without a bound",
        "an address gets a few transfers per day",
        "boxoffice/adapters/ledger/tickets/transfer_transactions.py",
        "if sent >= MAX_SENT_PER_DAY or received[0][0] >= MAX_RECEIVED_PER_DAY:",
        "if sent >= MAX_SENT_PER_DAY:",
        ("tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-transfers_have_bounds]",),
    ),
    Mutant(
        "a buyer refunds a ticket that was accepted",
        "a ticket belongs to whoever accepted it",
        "boxoffice/adapters/ledger/payments/payment_transactions.py",
        "if refund.reason == BY_FAN and obstacles.transferred.get(booking.id, set()) & set(refund.seats):",
        "if not refund.reason and obstacles.transferred.get(booking.id, set()) & set(refund.seats):",
        (
            "tests/boxoffice/adapters/ledger/test_transfer_book.py::test_transfer_book[sqlite-a_transfer_and_a_refund_of_the_same_ticket_do_not_both_happen]",
        ),
    ),
    Mutant(
        "a link alone sends a ticket on",
        "only a proven address sends a ticket on",
        "web/site/fans/transfers.py",
        "    if booking is None or not await _has_address(platform, caller, transfer):\n",
        "    if booking is None:\n",
        ("tests/web/site/test_transfer_pages.py::test_who_received_a_ticket_sends_it_on_only_with_the_proven_address",),
    ),
    Mutant(
        "anybody opens a transfer",
        "a transfer is its recipient's",
        "web/site/fans/transfers.py",
        "if transfer is None or not (by_link or await _has_address(platform, caller, transfer)):",
        "if transfer is None:",
        ("tests/web/site/test_transfer_pages.py::test_a_ticket_is_sent_accepted_and_only_the_new_code_is_admitted",),
    ),
    Mutant(
        "tickets of a forbidding event are sent",
        "the organiser decides about transfers",
        "boxoffice/tickets/ticket_transfers.py",
        "    if not event.transfers_allowed:\n",
        "    if event.transfers_allowed is None:\n",
        (
            "tests/boxoffice/tickets/test_ticket_transfers.py::test_what_the_organiser_decides_counts_for_tickets_on_their_way_too[changes0-forbidden]",
        ),
    ),
)
