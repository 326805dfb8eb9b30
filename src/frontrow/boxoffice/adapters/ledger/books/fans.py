"""The ledger's fans: proven addresses, magic links, what belongs to whom, and being forgotten.

Erasing removes what tells who somebody is and ends their waiting; bookings, payments and tickets keep the fan's random
id and nothing else.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from frontrow.boxoffice.adapters.ledger.engine.group_commit import Operation, Ran, Store, Written
from frontrow.boxoffice.adapters.ledger.programs.bookings import Program, booking_of
from frontrow.boxoffice.adapters.ledger.programs.waitlist import entry_of, leave
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.facts import Fact
from frontrow.boxoffice.model.people import Fan
from frontrow.boxoffice.model.waitlist import Entry
from frontrow.boxoffice.ports.queries import Query
from frontrow.core.coalescer import Coalescer

MAX_NAMES: Final = 1_000
MAX_ERASED: Final = 100_000  # nobody who asks to be forgotten is left half remembered


class FanBook:
    """The part of the ledger that knows who buys."""

    store: Store
    line: Coalescer[Operation, Any]

    async def add_fan(self, fan: Fan) -> bool:
        query = Query("add_fan", [(fan.id, fan.email, fan.created_at_us)])
        return bool(await self.line.submit(Written((query,), now_us=fan.created_at_us)))

    async def fan(self, fan_id: str) -> Fan | None:
        rows = await self.store.read(Query("fan_by_id", params=(fan_id,)))
        return Fan(*rows[0]) if rows else None

    async def fan_of_address(self, fan: Fan) -> Fan:
        found = await self.line.submit(Ran(lambda facts: _fan_of_address(fan), fan.created_at_us))
        return cast(Fan, found)

    async def add_magic_link(
        self, secret_hash: str, browser_hash: str, email: str, now_us: int, ends_at_us: int
    ) -> None:
        row = (secret_hash, browser_hash, email, now_us, ends_at_us)
        await self.line.submit(Written((Query("add_magic_link", [row]),), now_us=now_us))

    async def use_magic_link(self, secret_hash: str, browser_hash: str, now_us: int) -> str:
        query = Query("use_magic_link", [(secret_hash, browser_hash, now_us)])
        rows = await self.line.submit(Written((query,), now_us=now_us))
        return str(rows[0][0]) if rows else ""

    async def open_magic_link(self, secret_hash: str, now_us: int) -> bool:
        return bool(await self.store.read(Query("open_magic_link", params=(secret_hash, now_us))))

    async def names_of_address(self, email: str) -> list[str]:
        rows = await self.store.read(Query("names_of_address", params=(email, MAX_NAMES))) if email else []
        return [str(row[0]) for row in rows]

    async def is_reached_at(self, fan: str, email: str) -> bool:
        return bool(email and await self.store.read(Query("is_reached_at", params=(fan, email))))

    async def purchases_of_address(self, email: str) -> list[Booking]:
        rows = await self.store.read(Query("purchases_of_address", params=(email,))) if email else []
        return [booking_of(row) for row in rows]

    async def purchases_of(self, fans: Sequence[str]) -> list[Booking]:
        if not fans:
            return []
        rows = await self.store.read(Query("purchases_of", [(fan,) for fan in dict.fromkeys(fans)]))
        return [booking_of(row) for row in rows]

    async def erase_fan(self, fan_id: str, now_us: int) -> bool:
        return cast(bool, await self.line.submit(Ran(lambda facts: _erase(fan_id, now_us, facts), now_us)))

    async def entries_of(self, fans: Sequence[str]) -> list[Entry]:
        """Where these fans wait, whatever the event."""
        rows = await self.store.read(Query("entries_in_line", [(fan,) for fan in sorted(set(fans))]))
        return [entry_of(row) for row in rows]

    async def purge_people(self, now_us: int, limit: int = 1_000) -> None:
        queries = (
            Query("drop_old_sessions", params=(now_us, limit)),
            Query("drop_old_links", params=(now_us, limit)),
            Query("drop_sent_account_mail", params=(limit,)),
        )
        await self.line.submit(Written(queries, now_us=now_us))


def _fan_of_address(fan: Fan) -> Program[Fan]:
    yield Query("add_fan", [(fan.id, fan.email, fan.created_at_us)])
    rows = yield Query("fan_by_email", params=(fan.email,))
    return Fan(*rows[0])


def _erase(fan_id: str, now_us: int, facts: list[Fact]) -> Program[bool]:
    rows = yield Query("fan_by_id", params=(fan_id,))
    if not rows:
        return False
    email = str(rows[0][1])
    known_as = {(fan_id,)}
    if email:
        yield Query("drop_links_to", [(email,)])
        yield Query("drop_signups_of", [(email,)])
        known_as |= {(str(row[0]),) for row in (yield Query("names_of_address", params=(email, MAX_ERASED)))}
    names = sorted(known_as)
    for query in ("drop_contacts", "drop_name_tails", "drop_push", "drop_in_app"):
        yield Query(query, names)
    for row in (yield Query("entries_in_line", names)):  # nobody is left to be offered a seat
        yield from leave(row[1], row[3], now_us, facts)  # refused only while its offer is being paid for
    yield Query("drop_sessions_of", [(fan_id,)])
    return bool((yield Query("erase_fan", [(fan_id, now_us)])))
