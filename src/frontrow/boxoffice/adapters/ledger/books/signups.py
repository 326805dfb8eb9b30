"""The ledger's sign-ups before a sale, and the presales people register for (`model.signups`)."""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from frontrow.boxoffice.adapters.ledger.books.messages import DELIVERING, SqlMessageBook
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, Ran, Store, Written
from frontrow.boxoffice.adapters.ledger.programs.bookings import Program
from frontrow.boxoffice.model.messages import NewDelivery
from frontrow.boxoffice.model.signups import (
    DrawOrder,
    Presale,
    PresaleState,
    Purpose,
    RegistrationClosed,
    Signup,
    SignupState,
)
from frontrow.boxoffice.ports.queries import Query, Row

PAGE: Final = 1_000
MAX_PAGES: Final = 1_000


class SqlSignupBook:
    """Sign-ups and presales (`ports.signups.SignupBook`)."""

    def __init__(self, store: Store, line: CommitLine, messages: SqlMessageBook) -> None:
        self._store, self._line, self._messages = store, line, messages

    async def ask(self, signup: Signup, delivery: Callable[[str], NewDelivery] | None) -> tuple[str, SignupState]:
        """Keep the sign-up, or find that of the same address; its id and state. `delivery` makes the mail to it from
        the id, in the same transaction; it is sent unless the sign-up has been decided already."""
        found = await self._line.submit(Ran(lambda _: self._ask(signup, delivery), signup.created_at_us))
        return cast(tuple[str, SignupState], found)

    def _ask(
        self, signup: Signup, delivery: Callable[[str], NewDelivery] | None
    ) -> Program[tuple[str, SignupState] | RegistrationClosed]:
        row = (
            signup.id, signup.event_id, signup.purpose.value, signup.email, signup.locale, signup.state.value,
            signup.created_at_us,
        )  # fmt: skip
        rows = yield Query("ask_signups", [row])
        if not rows:
            return RegistrationClosed("registration is over", reason="over")
        signup_id, state = str(rows[0][0]), SignupState(rows[0][1])
        if delivery is not None and state in (SignupState.ASKED, SignupState.CONFIRMED):
            yield Query(DELIVERING, [_row(delivery(signup_id), signup.created_at_us)])
        return signup_id, state

    async def signup(self, signup_id: str) -> Signup | None:
        rows = await self._store.read(Query("signup_by_id", params=(signup_id,)))
        return _signup(rows[0]) if rows else None

    async def of_address(self, email: str) -> list[Signup]:
        """Every sign-up of an address."""
        return [_signup(row) for row in await self._store.read(Query("signups_of_address", params=(email,)))]

    async def confirm(self, signup_id: str, now_us: int) -> bool:
        """The address is proven. False: it was before, or it is too late."""
        query = Query("confirm_signups", [(signup_id, now_us)])
        return bool(await self._line.submit(Written((query,), now_us=now_us)))

    async def drop(self, signup_id: str) -> bool:
        """Write to this address no more; False if there was nothing to drop."""
        return bool(await self._line.submit(Written((Query("drop_signups", [(signup_id,)]),))))

    async def drop_unconfirmed(self, before_us: int, limit: int = PAGE) -> None:
        await self._line.submit(Written((Query("drop_old_signups", params=(before_us, limit)),)))

    async def counts(self, event_id: str) -> dict[tuple[str, str], int]:
        """(purpose, state) -> how many."""
        rows = await self._store.read(Query("signup_counts", params=(event_id,)))
        return {(row[0], row[1]): int(row[2]) for row in rows}

    # notices

    async def events_with_notices(self, limit: int = PAGE) -> list[str]:
        """Events that somebody waits to hear of."""
        rows = await self._store.read(Query("events_with_notices", params=(limit,)))
        return [str(row[0]) for row in rows]

    async def send_notices(
        self, event_id: str, delivery: Callable[[Signup], NewDelivery | None], limit: int, now_us: int
    ) -> int:
        """Put the mails of at most `limit` waiting notices in line and mark them sent, in one transaction; how many.
        A notice whose `delivery` is None is marked without a mail."""
        found = await self._line.submit(Ran(lambda _: self._send(event_id, delivery, limit, now_us), now_us))
        return cast(int, found)

    def _send(
        self, event_id: str, delivery: Callable[[Signup], NewDelivery | None], limit: int, now_us: int
    ) -> Program[int]:
        rows = yield Query("waiting_notices", params=(event_id, limit))
        waiting = [_signup(row) for row in rows]
        if waiting:
            made = [one for one in map(delivery, waiting) if one is not None]
            yield Query("settle_signups", [(one.id, SignupState.SENT.value, 0, now_us) for one in waiting])
            if made:
                yield Query(DELIVERING, [_row(one, now_us) for one in made])
        return len(waiting)

    # presales

    async def put_presale(self, presale: Presale, now_us: int) -> bool:
        """Open registration or change its times; False when it is drawn, or when order or lane would change."""
        row = (
            presale.event_id, presale.opens_at_us, presale.closes_at_us, presale.codes, presale.order.value,
            presale.lane, presale.seed, now_us,
        )  # fmt: skip
        return bool(await self._line.submit(Written((Query("put_presales", [row]),), now_us=now_us)))

    async def presale(self, event_id: str) -> Presale | None:
        rows = await self._store.read(Query("presale_by_event", params=(event_id,)))
        return _presale(rows[0]) if rows else None

    async def drawing(self, limit: int = 10) -> list[Presale]:
        """Presales whose draw is not finished."""
        return [_presale(row) for row in await self._store.read(Query("drawing_presales", params=(limit,)))]

    async def begin_draw(self, event_id: str, beacon: str, batches: str, now_us: int) -> bool:
        """Close registration for good and begin to draw; False when it is open still, or drawn already."""
        query = Query("begin_draw", [(event_id, beacon, batches, now_us)])
        return bool(await self._line.submit(Written((query,), now_us=now_us)))

    async def registrations(self, event_id: str) -> list[Signup]:
        """Every confirmed registration of an event."""
        found: list[Signup] = []
        after = ""
        for _ in range(MAX_PAGES):
            rows = await self._store.read(Query("registrations_page", params=(event_id, after, PAGE)))
            found += [_signup(row) for row in rows]
            if len(rows) < PAGE:
                break
            after = found[-1].id
        return found

    async def settle_registrations(
        self, settled: Sequence[tuple[str, SignupState, int]], deliveries: Sequence[NewDelivery], now_us: int
    ) -> None:
        """Write what the draw decided for these, and put their mails in line, in one transaction. Again: no change."""
        rows = [(signup_id, state.value, number, now_us) for signup_id, state, number in sorted(settled)]
        queries = (*self._messages.delivering(deliveries, now_us), Query("settle_signups", rows))
        await self._line.submit(Written(queries, now_us=now_us))

    async def finish_draw(self, event_id: str, last_rank: str, now_us: int) -> None:
        query = Query("finish_draw", [(event_id, last_rank, now_us)])
        await self._line.submit(Written((query,), now_us=now_us))


def _row(one: NewDelivery, now_us: int) -> Row:
    return (one.kind, one.lane, one.dedupe, one.body, now_us)


def _signup(row: Row) -> Signup:
    signup_id, event_id, purpose, email, locale, state, *numbers = row
    return Signup(signup_id, event_id, Purpose(purpose), email, locale, SignupState(state), *map(int, numbers))


def _presale(row: Row) -> Presale:
    values: list[Any] = list(row)
    values[4], values[10] = DrawOrder(values[4]), PresaleState(values[10])
    return Presale(*values)
