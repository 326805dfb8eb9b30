"""The vocabulary of the log: one line for every decision that costs somebody money, a seat or a mail.

Each line has an `action`, by which it is found, and ids; never a name, an address, a card or a text that somebody
wrote. Services and adapters write them where the decision is saved: `PAYMENT_CAPTURED(booking_id=…, …)`. The table in
docs/operations.md is made of this file, which also lists the lines of `core.log_line`:

python -m frontrow.shared.log_lines
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from frontrow.core import log_line
from frontrow.core.log_line import LogLine

PAGE: Final = Path("docs/operations.md")
BEGIN: Final = "<!-- made by python -m frontrow.shared.log_lines -->\n"
END: Final = "<!-- end of the log lines -->\n"

# Money

PAYMENT_AUTHORISED = LogLine(
    "payment_authorised",
    "money",
    "booking_id payment_id event_id amount_minor currency",
    "The bank reserved the money on the fan's card. Nothing is taken yet.",
)
BOOKING_SOLD = LogLine(
    "booking_sold",
    "money",
    "booking_id payment_id event_id seats amount_minor currency",
    "The seats belong to the fan and the tickets exist. From here on the booking only moves forward.",
)
PAYMENT_CAPTURED = LogLine(
    "payment_captured",
    "money",
    "booking_id payment_id event_id amount_minor currency",
    "The money was taken.",
)
CARD_DECLINED = LogLine(
    "card_declined",
    "money",
    "booking_id payment_id event_id reason declines",
    "The bank declined a card. The fan may try another one.",
)
PAYMENT_DECLINED = LogLine(
    "payment_declined",
    "money",
    "booking_id payment_id event_id reason declines",
    "The last card that the event's rules allow was declined. The payment is over.",
    level=logging.WARNING,
)
PAYMENT_RETRIED = LogLine(
    "payment_retried",
    "money",
    "booking_id payment_id event_id payment_state tries retry_in_s",
    "The provider did not answer. The payment is tried again.",
    level=logging.WARNING,
)
PAYMENT_GIVEN_UP = LogLine(
    "payment_given_up",
    "money",
    "booking_id payment_id event_id payment_state reason",
    "The payment ends before the sale. What was opened or reserved is voided.",
    level=logging.WARNING,
)
PAYMENT_VOIDED = LogLine(
    "payment_voided",
    "money",
    "booking_id payment_id event_id reason",
    "Nothing is reserved at the bank any more, and nothing was taken.",
)
PAYMENT_LAPSED = LogLine(
    "payment_lapsed",
    "money",
    "booking_id payment_id event_id reason",
    "The bank dropped an authorisation after the sale. The same card is tried again.",
    level=logging.ERROR,
)
BOOKING_ENDED = LogLine(
    "booking_ended",
    "money",
    "booking_id payment_id event_id booking_state seats reason",
    "A booking ended without a sale, or a sale ended without money. Its seats are free.",
    level=logging.WARNING,
)
REFUND_ASKED = LogLine(
    "refund_asked",
    "money",
    "refund_id booking_id event_id seats amount_minor currency reason",
    "Seats were taken back and money is owed.",
)
REFUND_REFUSED = LogLine(
    "refund_refused",
    "money",
    "booking_id event_id reason",
    "The event's rules do not allow the refund that the fan asked for.",
)
REFUND_PAID = LogLine(
    "refund_paid", "money", "refund_id booking_id amount_minor currency", "The provider gave the money back."
)
REFUND_PENDING = LogLine(
    "refund_pending",
    "money",
    "refund_id booking_id amount_minor currency",
    "The provider accepted the refund. The bank has not answered yet.",
)
REFUND_FAILED = LogLine(
    "refund_failed",
    "money",
    "refund_id booking_id amount_minor currency reason",
    "The provider or the bank did not take the refund. The money is still owed, and a person must try again.",
    level=logging.ERROR,
)
REFUND_MOOT = LogLine(
    "refund_moot", "money", "refund_id booking_id", "There is nothing to give back: no money was taken."
)
NOTICE_FOREIGN = LogLine(
    "notice_foreign",
    "money",
    "payment_id account kind",
    "A notice of one account names a payment of another one. Nothing is done: whoever has an account chooses the "
    "references of its payments.",
    level=logging.WARNING,
)
DISPUTE_OPENED = LogLine(
    "dispute_opened",
    "money",
    "dispute booking_id event_id amount_minor currency",
    "A fan's bank takes money back for now. Nothing of it is refunded, and the gate follows the event's rule.",
    level=logging.WARNING,
)
DISPUTE_ENDED = LogLine(
    "dispute_ended",
    "money",
    "dispute booking_id event_id amount_minor currency",
    "A dispute was won or ended without a decision. The money is the organiser's again.",
)
DISPUTE_LOST = LogLine(
    "dispute_lost",
    "money",
    "dispute booking_id event_id amount_minor currency",
    "A dispute was lost. The bank keeps the money.",
    level=logging.ERROR,
)
REFUND_WAITS = LogLine(
    "refund_waits",
    "money",
    "refund_id booking_id amount_minor currency",
    "A refund waits because the bank is taking the same money back. It is paid if the dispute is won.",
    level=logging.WARNING,
)
RECONCILIATION_DIFFERENCE = LogLine(
    "reconciliation_difference",
    "money",
    "currency ledger_minor provider_minor",
    "After a pass over all payments, ledger and provider do not have the same sum.",
    level=logging.ERROR,
)
RECONCILIATION_PROBLEM = LogLine(
    "reconciliation_problem",
    "money",
    "problem",
    "The reconciler found something that a person must decide.",
    level=logging.ERROR,
)

# Seats

HOLD_EXPIRED_WHILE_PAYING = LogLine(
    "hold_expired_while_paying",
    "seats",
    "booking_id event_id seats",
    "A hold ended while its payment was under way. Its seats are free, and the payment is voided.",
    level=logging.WARNING,
)
CLAIMS_REBUILT = LogLine(
    "claims_rebuilt",
    "seats",
    "event_id",
    "The claim store did not have an event: it is new here, or the store lost it. It was filled from the ledger.",
)
OFFER_MADE = LogLine(
    "offer_made", "seats", "offer_id booking_id event_id seats", "Free seats were offered to the next on the waitlist."
)
OFFER_ENDED = LogLine(
    "offer_ended", "seats", "offer_id booking_id event_id offer_state seats", "An offer was taken, declined or lapsed."
)

# Messages

DELIVERY_SENT = LogLine(
    "delivery_sent",
    "messages",
    "delivery kind about attempts",
    "A mail, message or webhook was handed over. `about` names its occasion and booking.",
)
DELIVERY_RETRIED = LogLine(
    "delivery_retried",
    "messages",
    "delivery kind about retry_in_s",
    "A mail, message or webhook was not accepted at the first try. It is tried again; later tries have no line.",
    level=logging.WARNING,
)
DELIVERY_GIVEN_UP = LogLine(
    "delivery_given_up",
    "messages",
    "delivery kind about attempts",
    "A mail, message or webhook will not be tried again. `frontrow ledger dead-letters list` says why.",
    level=logging.ERROR,
)
ADDRESS_BLOCKED = LogLine(
    "address_blocked",
    "messages",
    "channel reason about",
    "An address bounced, its reader complained or answered STOP. It gets nothing more over this channel.",
    level=logging.WARNING,
)
ADDRESS_OPENED = LogLine(
    "address_opened", "messages", "channel", "A person who had answered STOP answered START and gets SMS again."
)
MESSAGE_DELAYED = LogLine(
    "message_delayed",
    "messages",
    "channel about",
    "A mail or SMS that was handed over did not arrive this time: a full mailbox, a phone that is off.",
    level=logging.WARNING,
)
REPORTS_CONFIRMED = LogLine(
    "reports_confirmed", "messages", "channel", "The topic by which SES reports bounces was confirmed."
)
PHONE_CODE_SENT = LogLine(
    "phone_code_sent", "messages", "calling_code", "A code went to a number that a fan typed; `calling_code` is +43."
)
PHONE_PROVEN = LogLine(
    "phone_proven",
    "messages",
    "calling_code",
    "A fan typed the right code. From here on the number gets SMS.",
)
DEAD_LETTER = LogLine(
    "dead_letter",
    "messages",
    "consumer fact error",
    "A consumer could not handle a fact. It is kept, and the others go on.",
    level=logging.ERROR,
)

# Waiting room and limits

LEAD_WON = LogLine("lead_won", "room", "event_id", "This process leads the room and admits people from now on.")
LEAD_LOST = LogLine("lead_lost", "room", "event_id", "This process does not lead the room any more. Another one will.")
ROOM_REBUILT = LogLine(
    "room_rebuilt",
    "room",
    "event_id epoch",
    "The store had lost a room. It was rebuilt from the audit.",
    level=logging.WARNING,
)
LIMITS_WITHOUT_STORE = log_line.LIMITS_WITHOUT_STORE
LIMITS_SHARED_AGAIN = log_line.LIMITS_SHARED_AGAIN
LIMIT_RULES_TAKEN = log_line.LIMIT_RULES_TAKEN
LIMIT_RULES_KEPT = log_line.LIMIT_RULES_KEPT
LIMIT_SHADOW_REFUSED = log_line.LIMIT_SHADOW_REFUSED
LIMITS_SHEDDING = log_line.LIMITS_SHEDDING
LIMITS_SHEDDING_OVER = log_line.LIMITS_SHEDDING_OVER

# Failures

JOB_FAILED = log_line.JOB_FAILED

LOG_LINES: Final = {line.action: line for line in list(globals().values()) if isinstance(line, LogLine)}


def table() -> Iterator[str]:
    """The lines as a Markdown table."""
    yield "| action | level | fields | when |"
    yield "|---|---|---|---|"
    for line in LOG_LINES.values():
        fields = ", ".join(f"`{field}`" for field in line.fields)
        yield f"| `{line.action}` | {logging.getLevelName(line.level).lower()} | {fields} | {line.when} |"


def renewed(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(table()) + f"\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
