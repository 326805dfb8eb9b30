"""The ledger's sign-ups before a sale, and the presales people register for. The contract is in `presale/ports.py`."""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from frontrow.boxoffice.adapters.ledger.engine.due_work import DRAWS, NOTICES, DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.messages.message_book import ADD_DELIVERIES, SqlMessageBook
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.presale.model import (
    DrawOrder,
    Presale,
    PresaleState,
    Purpose,
    RegistrationClosed,
    Signup,
    SignupState,
)

PAGE: Final = 1_000
MAX_PAGES: Final = 1_000


class SqlSignupBook:
    """Sign-ups and presales (`presale.ports.SignupBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine, messages: SqlMessageBook, due: DueWork) -> None:
        self._store, self._line, self._messages, self._due = store, line, messages, due

    async def save_signup(
        self, signup: Signup, delivery: Callable[[str], NewDelivery] | None
    ) -> tuple[str, SignupState]:
        found = await self._line.submit(RunProgram(lambda _: self._ask(signup, delivery), signup.created_at_us))
        return cast(tuple[str, SignupState], found)

    def _ask(
        self, signup: Signup, delivery: Callable[[str], NewDelivery] | None
    ) -> Program[tuple[str, SignupState] | RegistrationClosed]:
        about = (signup.id, signup.event_id, signup.purpose.value, signup.email, signup.locale)
        row = (*about, signup.state.value, signup.created_at_us)
        rows = yield Query("ask_signups", [row])
        if not rows:
            return RegistrationClosed("registration is over", reason="over")
        signup_id, state = str(rows[0][0]), SignupState(rows[0][1])
        if delivery is not None and state in (SignupState.ASKED, SignupState.CONFIRMED):
            yield Query(ADD_DELIVERIES, [_row(delivery(signup_id), signup.created_at_us)])
        return signup_id, state

    async def signup(self, signup_id: str) -> Signup | None:
        rows = await self._store.read(Query("signup_by_id", params=(signup_id,)))
        return _signup(rows[0]) if rows else None

    async def of_address(self, email: str) -> list[Signup]:
        return [_signup(row) for row in await self._store.read(Query("signups_of_address", params=(email,)))]

    async def confirm(self, signup_id: str, now_us: int) -> bool:
        query = Query("confirm_signups", [(signup_id, now_us)])
        return bool(await self._line.submit(RunStatements((query,), now_us=now_us)))

    async def drop(self, signup_id: str) -> bool:
        return bool(await self._line.submit(RunStatements((Query("drop_signups", [(signup_id,)]),))))

    async def drop_unconfirmed(self, before_us: int, limit: int = PAGE) -> None:
        await self._line.submit(RunStatements((Query("drop_old_signups", params=(before_us, limit)),)))

    async def counts(self, event_id: str) -> dict[tuple[str, str], int]:
        rows = await self._store.read(Query("signup_counts", params=(event_id,)))
        return {(row[0], row[1]): int(row[2]) for row in rows}

    # notices

    async def events_with_notices(self, now_us: int, limit: int = PAGE) -> list[str]:
        if not await self._due.may_have(NOTICES, now_us):
            return []
        rows = await self._store.read(Query("events_with_notices", params=(limit,)))
        return [str(row[0]) for row in rows]

    async def send_notices(
        self, event_id: str, delivery: Callable[[Signup], NewDelivery | None], limit: int, now_us: int
    ) -> int:
        found = await self._line.submit(RunProgram(lambda _: self._send(event_id, delivery, limit, now_us), now_us))
        return cast(int, found)

    def _send(
        self, event_id: str, delivery: Callable[[Signup], NewDelivery | None], limit: int, now_us: int
    ) -> Program[int]:
        rows = yield Query("waiting_notices", params=(event_id, limit))
        waiting = [_signup(row) for row in rows]
        if waiting:
            mails = [one for one in map(delivery, waiting) if one is not None]
            yield Query("save_signup_states", [(one.id, SignupState.SENT.value, 0, now_us) for one in waiting])
            if mails:
                yield Query(ADD_DELIVERIES, [_row(one, now_us) for one in mails])
        return len(waiting)

    # presales

    async def put_presale(self, presale: Presale, now_us: int) -> bool:
        times = (presale.opens_at_us, presale.closes_at_us)
        row = (presale.event_id, *times, presale.codes, presale.order.value, presale.lane, presale.seed, now_us)
        return bool(await self._line.submit(RunStatements((Query("put_presales", [row]),), now_us=now_us)))

    async def presale(self, event_id: str) -> Presale | None:
        rows = await self._store.read(Query("presale_by_event", params=(event_id,)))
        return _presale(rows[0]) if rows else None

    async def drawing(self, now_us: int, limit: int = 10) -> list[Presale]:
        if not await self._due.may_have(DRAWS, now_us):
            return []
        return [_presale(row) for row in await self._store.read(Query("drawing_presales", params=(limit,)))]

    async def begin_draw(self, event_id: str, beacon: str, batches: str, now_us: int) -> bool:
        query = Query("begin_draw", [(event_id, beacon, batches, now_us)])
        return bool(await self._line.submit(RunStatements((query,), now_us=now_us)))

    async def registrations(self, event_id: str) -> list[Signup]:
        found: list[Signup] = []
        after = ""
        for _ in range(MAX_PAGES):
            rows = await self._store.read(Query("registrations_page", params=(event_id, after, PAGE)))
            found += [_signup(row) for row in rows]
            if len(rows) < PAGE:
                break
            after = found[-1].id
        return found

    async def write_draw_results(
        self, results: Sequence[tuple[str, SignupState, int]], deliveries: Sequence[NewDelivery], now_us: int
    ) -> None:
        rows = [(signup_id, state.value, number, now_us) for signup_id, state, number in sorted(results)]
        queries = (*self._messages.make_delivery_writes(deliveries, now_us), Query("save_signup_states", rows))
        await self._line.submit(RunStatements(queries, now_us=now_us))

    async def finish_draw(self, event_id: str, last_rank: str, now_us: int) -> None:
        query = Query("finish_draw", [(event_id, last_rank, now_us)])
        await self._line.submit(RunStatements((query,), now_us=now_us))


def _row(one: NewDelivery, now_us: int) -> Row:
    return (one.kind, one.queue, one.dedupe, one.body, now_us)


def _signup(row: Row) -> Signup:
    signup_id, event_id, purpose, email, locale, state, *numbers = row
    return Signup(signup_id, event_id, Purpose(purpose), email, locale, SignupState(state), *map(int, numbers))


def _presale(row: Row) -> Presale:
    values: list[Any] = list(row)
    values[4], values[10] = DrawOrder(values[4]), PresaleState(values[10])
    return Presale(*values)
