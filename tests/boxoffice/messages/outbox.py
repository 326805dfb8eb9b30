"""Facts in an outbox, and a little bus consumer, for tests and benchmarks."""

from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.facts.model import BookingConfirmed, Fact, encode_fact

NOW = 1_700_000_000_000_000


def confirmed(number: int, event_id: str = "evt_1", fan: str = "") -> BookingConfirmed:
    return BookingConfirmed(f"bkg_{number}", event_id, fan or f"fan_{number}", number, (number,), NOW, 5000, "EUR")


async def put_facts(ledger: SqlLedger, facts: list[Fact]) -> None:
    """Into the outbox, as a committing transaction does."""
    for start in range(0, len(facts), 2_000):
        rows = [
            (type(fact).__name__, encode_fact(fact), fact.event_id, fact.booking_id, fact.at_us)
            for fact in facts[start : start + 2_000]
        ]
        await ledger.line.submit(RunStatements((Query("add_facts", rows),), now_us=NOW))


async def unpublished(ledger: SqlLedger) -> int:
    rows = await ledger.store.read(Query("ledger_counts"))
    return next(row[1] for row in rows if row[0] == "facts unpublished")
