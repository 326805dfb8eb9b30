"""One transaction of the group commit: operations of many callers, each with an answer of its own.

All kinds of operations run in a fixed order (so that two writers take their locks in the same order), then the facts
they made go to the outbox and, as one entry, to the audit chain; all of it is committed together or not at all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from frontrow.boxoffice.adapters.ledger.audit_chain import AuditEntry, Chain
from frontrow.boxoffice.adapters.ledger.programs.bookings import ExpiryAsked, MoveAsked, Program, expire_due, make_moves
from frontrow.boxoffice.adapters.ledger.programs.holds import fan_lock, place_holds
from frontrow.boxoffice.adapters.ledger.programs.optimistic_insert import Hopes
from frontrow.boxoffice.adapters.ledger.programs.payments import (
    LookAsked,
    PaymentAsked,
    RefundAsked,
    RefundSaved,
    ask_refunds,
    look,
    save_payments,
    save_refunds,
)
from frontrow.boxoffice.model.facts import Fact, OutboxFact, decode_fact, encode_fact
from frontrow.boxoffice.model.holds import NewHold
from frontrow.boxoffice.ports.queries import Query, Row
from frontrow.core.coalescer import Coalescer


class LeaseAsked(msgspec.Struct, frozen=True):
    """Lease the oldest unpublished facts."""

    now_us: int
    lease_us: int
    limit: int


class Written(msgspec.Struct, frozen=True):
    """Plain statements in order, answered with the rows of the last; a `note` goes to the audit log, `facts` to the
    outbox if the last statement answered anything."""

    queries: tuple[Query, ...]
    note: str = ""
    now_us: int = 0
    facts: tuple[Fact, ...] = ()


class Ran(msgspec.Struct, frozen=True):
    """A program of another topic (messages, waitlist, returns), run by itself after the batch's moves and holds.

    It gets the list that its facts go to and returns its answer, or the exception that refuses it. `holds` are those it
    may place: their fans are locked with the others. The `note` goes to the audit log unless it was refused (an
    exception or something empty as its answer).
    """

    program: Callable[[list[Fact]], Program[Any]]
    now_us: int
    holds: tuple[NewHold, ...] = ()
    note: str = ""


Operation: TypeAlias = (
    NewHold
    | MoveAsked
    | ExpiryAsked
    | LeaseAsked
    | Written
    | PaymentAsked
    | RefundAsked
    | RefundSaved
    | LookAsked
    | Ran
)
CommitLine: TypeAlias = Coalescer[Operation, Any]
Committed: TypeAlias = tuple[list[Any], AuditEntry | None]


def transaction(
    operations: Sequence[Operation], chain: Chain, *, hopes: Hopes | None = None, at_once: bool = False
) -> Program[Committed]:
    """An answer (or exception) per operation, and the audit entry that is committed with them.

    `at_once`: the store can record facts and audit entry by one statement. Where there are several writers they must
    have taken `fan_locks` before.
    """
    answers: list[Any] = [None] * len(operations)
    facts: list[Fact] = []
    notes: list[str] = []
    moves = [at for at, operation in enumerate(operations) if type(operation) is MoveAsked]
    holds = [at for at, operation in enumerate(operations) if type(operation) is NewHold]
    if moves:
        _put(answers, moves, (yield from make_moves([operations[at] for at in moves], facts)))  # type: ignore[misc]
    if holds:
        _put(answers, holds, (yield from place_holds([operations[at] for at in holds], facts, hopes)))  # type: ignore[misc]
    if len(moves) + len(holds) == len(operations):
        return answers, (yield from _record(facts, notes, chain, _latest_us(operations), at_once))
    payments = [at for at, operation in enumerate(operations) if type(operation) is PaymentAsked]
    refunds = [at for at, operation in enumerate(operations) if type(operation) is RefundAsked]
    if payments:
        _put(answers, payments, (yield from save_payments([operations[at] for at in payments], facts)))  # type: ignore[misc]
    if refunds:
        _put(answers, refunds, (yield from ask_refunds([operations[at] for at in refunds], facts)))  # type: ignore[misc]
    saved = [at for at, operation in enumerate(operations) if type(operation) is RefundSaved]
    if saved:
        _put(answers, saved, (yield from save_refunds([operations[at] for at in saved], facts)))  # type: ignore[misc]
    for at, operation in enumerate(operations):
        match operation:
            case LookAsked():
                answers[at] = yield from look(operation)
            case ExpiryAsked():
                answers[at] = yield from expire_due(operation, facts)
            case LeaseAsked():
                answers[at] = yield from lease(operation)
            case Ran():
                answers[at] = yield from operation.program(facts)
                done = bool(operation.note) and answers[at] and not isinstance(answers[at], BaseException)
                notes += [operation.note] if done else []
            case Written():
                for query in operation.queries:
                    answers[at] = yield query
                notes += [operation.note] * bool(operation.note)
                facts += operation.facts if answers[at] else ()
    entry = yield from _record(facts, notes, chain, _latest_us(operations), at_once)
    return answers, entry


def fan_locks(operations: Sequence[Operation]) -> list[int]:
    """The locks of the fans whose caps count, to be taken before anything else, in one order for all writers."""
    return sorted({fan_lock(wish) for wish in _wishes(operations) if wish.cap is not None})


def _wishes(operations: Sequence[Operation]) -> Iterator[NewHold]:
    for operation in operations:
        if type(operation) is NewHold:
            yield operation
        elif type(operation) is Ran:
            yield from operation.holds


def _put(answers: list[Any], ats: Sequence[int], given: Sequence[Any]) -> None:
    for at, answer in zip(ats, given, strict=True):
        answers[at] = answer


def _latest_us(operations: Sequence[Operation]) -> int:
    return max(operation.now_us for operation in operations)


def _record(
    facts: Sequence[Fact], notes: list[str], chain: Chain, at_us: int, at_once: bool
) -> Program[AuditEntry | None]:
    """The facts into the outbox, and facts and notes as one entry into the audit chain."""
    if not facts and not notes:
        return None
    bodies = [encode_fact(fact) for fact in facts]
    rows = [
        (type(fact).__name__, body, fact.event_id, fact.booking_id, fact.at_us)
        for fact, body in zip(facts, bodies, strict=True)
    ]
    entry = chain.next(at_us, "[" + ",".join(bodies + notes) + "]")
    written = (entry.chain, entry.seq, entry.at_us, entry.body, entry.prev_hash, entry.hash)
    if rows and at_once:
        yield Query("record", rows, written)
        return entry
    if rows:
        yield Query("add_facts", rows)
    yield Query("add_audit", [written])
    yield Query("set_audit_head", [(entry.chain, entry.seq, entry.hash)])
    return entry


def lease(ask: LeaseAsked) -> Program[list[OutboxFact]]:
    """Facts nobody leases, oldest first."""
    due = yield Query("due_facts", params=(ask.now_us, ask.limit))
    if not due:
        return []
    until_us = ask.now_us + ask.lease_us
    rows = yield Query("lease_facts", [(row[0], until_us) for row in due])
    return sorted((OutboxFact(row[0], decode_fact(row[1])) for row in rows), key=lambda fact: fact.number)


class Store(Protocol):
    """Where a ledger keeps its tables: commits batches, answers reads."""

    @property
    def writers(self) -> int: ...

    async def write(self, operations: Sequence[Operation]) -> list[Any]: ...

    async def read(self, query: Query) -> list[Row]: ...

    async def time_us(self) -> int: ...

    async def aclose(self) -> None: ...
