"""Messages: one per fact, to who has the ticket, sent by one worker."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a mail that was sent is sent again",
        "one message per fact",
        "boxoffice/adapters/ledger/messages/message_statements.sql",
        (
            "FROM :rows WHERE d.number = r.number AND coalesce(d.delivery_state, '') = 'waiting'\n"
            "\n"
            "-- name: delivery_counts"
        ),
        ("FROM :rows WHERE d.number = r.number\n\n-- name: delivery_counts"),
        (
            "tests/boxoffice/adapters/ledger/test_message_book.py::test_message_book[sqlite-a_delivery_comes_back_at_its_time_and_is_sent_once]",
        ),
    ),
    Mutant(
        "a lease that ended is renewed",
        "a mail is sent by one worker",
        "boxoffice/adapters/ledger/messages/message_statements.sql",
        " AND d.leased_until_us > r.now_us\n",
        "\n",
        (
            "tests/boxoffice/adapters/ledger/test_message_book.py::test_message_book[sqlite-a_lane_is_claimed_to_one_worker_and_no_lane_waits_for_another]",
        ),
    ),
    Mutant(
        "a lane that two workers send",
        "a mail is sent by one worker",
        "boxoffice/adapters/ledger/messages/message_statements.sql",
        "        WHERE busy.kind = :kind AND busy.delivery_state = 'waiting' AND busy.leased_until_us > :now_us)",
        "        WHERE busy.kind = :kind AND busy.delivery_state = 'sent' AND busy.leased_until_us > :now_us)",
        (
            "tests/boxoffice/adapters/ledger/test_message_book.py::test_message_book[sqlite-a_lane_is_claimed_to_one_worker_and_no_lane_waits_for_another]",
        ),
    ),
    Mutant(
        "an outage of ours counts as a try",
        "nothing is given up while our own stores are away",
        "boxoffice/messages/delivery_retries.py",
        "    if not outcome.tried:\n",
        "    if not outcome.tried and delivery.attempts < 0:\n",
        (
            "tests/boxoffice/messages/test_own_outages.py::test_an_outage_of_the_ledger_uses_up_no_try_and_the_mail_goes_out_right_after_it",
        ),
    ),
    Mutant(
        "a mail for tickets that were refunded",
        "no mail has tickets that admit nobody",
        "boxoffice/messages/notifications.py",
        ("        if body.kind in WITH_TICKETS and not sheets and body.channel != IN_APP:\n            return None"),
        (
            "        if body.kind in WITH_TICKETS and sheets is None and body.channel != IN_APP:\n"
            "            return None"
        ),
        ("tests/boxoffice/messages/test_notify.py::test_a_refunded_booking_is_told_no_dead_tickets",),
    ),
    Mutant(
        "who has the ticket now is not told that it ended",
        "whoever has a ticket hears that it is not valid",
        "boxoffice/messages/notifications.py",
        "if one.state is TransferState.ACCEPTED and one.seat_index in revoked:",
        "if one.state is TransferState.SENT and one.seat_index in revoked:",
        ("tests/web/site/test_transfer_pages.py::test_who_received_a_ticket_sends_it_on_only_with_the_proven_address",),
    ),
    Mutant(
        "a failed refund that staff do not hear of",
        "somebody hears of money that did not go back",
        "boxoffice/messages/notifications.py",
        ("            if permission in ROLES[member.role]:\n                message_id"),
        ("            if permission not in ROLES[member.role]:\n                message_id"),
        (
            "tests/boxoffice/messages/test_notify.py::test_a_failed_refund_is_mailed_once_to_every_member_who_may_refund",
        ),
    ),
    Mutant(
        "a message heard twice acts twice",
        "one message per fact",
        "boxoffice/adapters/ledger/messages/message_book.py",
        "        for query in queries if heard[-1] else ():",
        "        for query in queries:",
        (
            "tests/boxoffice/adapters/ledger/test_message_book.py::test_message_book[sqlite-of_many_callers_with_one_message_exactly_one_acts]",
        ),
    ),
    Mutant(
        "more than a few messages per day",
        "an event sends a few messages per day",
        "boxoffice/adapters/ledger/messages/buyer_message_transactions.py",
        ('    if refused is not None:\n        return refused\n    yield Query("put_buyer_messages"'),
        '    yield Query("put_buyer_messages"',
        (
            "tests/boxoffice/organiser/test_buyer_messages.py::test_b13_an_event_sends_a_few_messages_per_day_even_if_all_ask_at_once[sqlite]",
        ),
    ),
    Mutant(
        "another event's message is sent",
        "a message is its event's",
        "boxoffice/adapters/ledger/messages/buyer_message_transactions.py",
        ("        if known.event_id != message.event_id:\n            return BuyerMessageNotFound(message.id)\n"),
        "",
        (
            "tests/boxoffice/adapters/ledger/test_buyer_message_book.py::test_nobody_sends_the_message_of_another_event[sqlite-draft]",
        ),
    ),
    Mutant(
        "who bought after the message gets it",
        "a message goes to who had tickets then",
        "boxoffice/adapters/ledger/messages/buyer_message_statements.sql",
        "  AND coalesce(b.confirmed_at_us, 0) <= :bought_by_us AND (:booking_id",
        "  AND :bought_by_us > 0 AND (:booking_id",
        (
            "tests/boxoffice/organiser/test_buyer_messages.py::test_b13_everyone_who_has_a_ticket_gets_it_once_and_nobody_else[sqlite]",
        ),
    ),
    Mutant(
        "a message to who gave the ticket away",
        "a message goes to who has the ticket",
        "boxoffice/adapters/ledger/messages/buyer_message_statements.sql",
        (
            "SELECT b.fence, b.id, b.fan, t.transfer_id,\n"
            "  CASE WHEN t.transfer_id = '' THEN coalesce(c.email, '') ELSE coalesce(x.email, '') END\n"
            "FROM :rows"
        ),
        ("SELECT b.fence, b.id, b.fan, t.transfer_id,\n  coalesce(c.email, '')\nFROM :rows"),
        (
            "tests/boxoffice/organiser/test_buyer_messages.py::test_b13_everyone_who_has_a_ticket_gets_it_once_and_nobody_else[sqlite]",
        ),
    ),
    Mutant(
        "the busy mailbox is given up",
        "a mail is tried again while it can arrive",
        "boxoffice/adapters/channels/email.py",
        "final=not codes or min(codes) >= 500",
        "final=True",
        (
            "tests/boxoffice/messages/test_notify.py::test_a_batch_of_mails_takes_one_connection_and_each_has_its_own_outcome",
        ),
    ),
)
