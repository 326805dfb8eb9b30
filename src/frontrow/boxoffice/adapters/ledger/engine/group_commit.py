"""One transaction of the group commit: operations of many callers, each with its own answer.

The kinds of operations run in a fixed order, so that two writers take their locks in the same order. Then the facts
that they produced are written to the outbox and, as one entry, to the audit chain. Everything is committed together or
not at all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from frontrow.boxoffice.adapters.ledger.audit_chain import AuditEntry, Chain
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    ExpireHolds,
    MakeMove,
    Program,
    expire_due,
    make_moves,
)
from frontrow.boxoffice.adapters.ledger.holds.hold_transactions import fan_lock, place_holds
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import ConflictHistory
from frontrow.boxoffice.adapters.ledger.payments.payment_transactions import (
    ClaimDue,
    RequestRefund,
    SavePayment,
    SaveRefund,
    claim_due,
    request_refunds,
    save_payments,
    save_refunds,
)
from frontrow.boxoffice.facts.model import Fact, OutboxFact, decode_fact, encode_fact
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.shared.coalescer import Coalescer


class ClaimFacts(msgspec.Struct, frozen=True):
    """Claim the oldest unpublished facts."""

    now_us: int
    claim_us: int
    limit: int
    taken: list[int] = []  # what the last run of this request has claimed


class RunStatements(msgspec.Struct, frozen=True):
    """Run plain statements in order. The answer is the rows of the last one.

    The `note` goes to the audit log. The `facts` go to the outbox if the last statement returned any row.
    """

    queries: tuple[Query, ...]
    note: str = ""
    now_us: int = 0
    facts: tuple[Fact, ...] = ()


class RunProgram(msgspec.Struct, frozen=True):
    """Run a program of another book (messages, waitlist, returns), after the batch's moves and holds.

    The program gets the list to which it adds its facts. It returns its answer, or the exception that refuses it.
    `holds` are the holds it may place: their fans are locked with the others. The `note` goes to the audit log unless
    the answer is an exception or empty.
    """

    program: Callable[[list[Fact]], Program[Any]]
    now_us: int
    holds: tuple[NewHold, ...] = ()
    note: str = ""


Operation: TypeAlias = (
    NewHold
    | MakeMove
    | ExpireHolds
    | ClaimFacts
    | RunStatements
    | SavePayment
    | RequestRefund
    | SaveRefund
    | ClaimDue
    | RunProgram
)
CommitLine: TypeAlias = Coalescer[Operation, Any]
Committed: TypeAlias = tuple[list[Any], AuditEntry | None]


def transaction(
    operations: Sequence[Operation],
    chain: Chain,
    *,
    history: ConflictHistory | None = None,
    again: bool = False,
    at_once: bool = False,
) -> Program[Committed]:
    """An answer or exception per operation, and the audit entry that is committed with them.

    `again`: the batch is run again after a conflict. `at_once`: the store can record facts and the audit entry in one
    statement. A store with several writers must have taken `fan_locks` before.
    """
    answers: list[Any] = [None] * len(operations)
    facts: list[Fact] = []
    notes: list[str] = []
    moves = [at for at, operation in enumerate(operations) if type(operation) is MakeMove]
    holds = [at for at, operation in enumerate(operations) if type(operation) is NewHold]
    if moves:
        _put(answers, moves, (yield from make_moves([operations[at] for at in moves], facts)))  # type: ignore[misc]
    if holds:
        _put(answers, holds, (yield from place_holds([operations[at] for at in holds], facts, history)))  # type: ignore[misc]
    if len(moves) + len(holds) == len(operations):
        return answers, (yield from _record(facts, notes, chain, _latest_us(operations), at_once))
    payments = [at for at, operation in enumerate(operations) if type(operation) is SavePayment]
    refunds = [at for at, operation in enumerate(operations) if type(operation) is RequestRefund]
    if payments:
        saves: list[SavePayment] = [operations[at] for at in payments]  # type: ignore[misc]
        _put(answers, payments, (yield from save_payments(saves, facts, None if again else history)))
    if refunds:
        _put(answers, refunds, (yield from request_refunds([operations[at] for at in refunds], facts)))  # type: ignore[misc]
    saved = [at for at, operation in enumerate(operations) if type(operation) is SaveRefund]
    if saved:
        _put(answers, saved, (yield from save_refunds([operations[at] for at in saved], facts)))  # type: ignore[misc]
    for at, operation in enumerate(operations):
        match operation:
            case ClaimDue():
                answers[at] = yield from claim_due(operation)
            case ExpireHolds():
                answers[at] = yield from expire_due(operation, facts)
            case ClaimFacts():
                answers[at] = yield from claim_facts(operation)
            case RunProgram():
                answers[at] = yield from operation.program(facts)
                done = bool(operation.note) and answers[at] and not isinstance(answers[at], BaseException)
                notes += [operation.note] if done else []
            case RunStatements():
                for query in operation.queries:
                    answers[at] = yield query
                notes += [operation.note] * bool(operation.note)
                facts += operation.facts if answers[at] else ()
    entry = yield from _record(facts, notes, chain, _latest_us(operations), at_once)
    return answers, entry


def fan_locks(operations: Sequence[Operation]) -> list[int]:
    """The locks of the fans with a cap. Take them before anything else; the order is the same for all writers."""
    return sorted({fan_lock(hold) for hold in _holds_to_place(operations) if hold.cap is not None})


def _holds_to_place(operations: Sequence[Operation]) -> Iterator[NewHold]:
    for operation in operations:
        if type(operation) is NewHold:
            yield operation
        elif type(operation) is RunProgram:
            yield from operation.holds


def _put(answers: list[Any], ats: Sequence[int], given: Sequence[Any]) -> None:
    for at, answer in zip(ats, given, strict=True):
        answers[at] = answer


def _latest_us(operations: Sequence[Operation]) -> int:
    return max(operation.now_us for operation in operations)


def _record(
    facts: Sequence[Fact], notes: list[str], chain: Chain, at_us: int, at_once: bool
) -> Program[AuditEntry | None]:
    """Write the facts to the outbox, and facts and notes as one entry to the audit chain."""
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


def claim_facts(request: ClaimFacts) -> Program[list[OutboxFact]]:
    """Facts that nobody has claimed, oldest first."""
    until_us = request.now_us + request.claim_us
    due: list[Row] = []
    if request.taken:  # this claim is run again: its first answer may have been lost after the commit
        due = yield Query("claimed_facts", [(number, until_us) for number in request.taken])
    due = due or (yield Query("due_facts", params=(request.now_us, request.limit)))
    request.taken[:] = [row[0] for row in due]
    if not due:
        return []
    rows = yield Query("claim_facts", [(row[0], until_us) for row in due])
    return sorted((OutboxFact(row[0], decode_fact(row[1]), row[1]) for row in rows), key=lambda fact: fact.number)


class LedgerReader(Protocol):
    """What answers a ledger's reads."""

    async def read(self, query: Query) -> list[Row]: ...


class LedgerStore(LedgerReader, Protocol):
    """Where a ledger keeps its tables. It commits batches and answers reads."""

    @property
    def writers(self) -> int: ...

    async def write(self, operations: Sequence[Operation]) -> list[Any]: ...

    async def time_us(self) -> int: ...

    async def aclose(self) -> None: ...
