"""Reads by one key, gathered: what many callers look up in the same moment travels as one statement (core.coalescer).

A read is sent after it was asked, so it sees everything that was committed before. What a store might refuse to take as
a key is read by itself, so that it fails nobody else.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from frontrow.boxoffice.adapters.ledger.engine.group_commit import Store
from frontrow.boxoffice.ports.queries import Query, Row
from frontrow.core.coalescer import Coalescer

IN_FLIGHT: Final = 2


class Looks:
    """The rows of a statement over `(key)` rows, for each key those whose column `at` is the key."""

    def __init__(self, store: Store, statement: str, at: int, *, max_batch: int, max_waiting: int) -> None:
        self._store, self._statement, self._at = store, statement, at
        self._line: Coalescer[str, list[Row]] = Coalescer(
            self._read, max_batch=max_batch, max_in_flight=IN_FLIGHT, max_waiting=max_waiting, name="ledger reads"
        )

    async def of(self, key: str) -> list[Row]:
        if key.isascii() and key.isprintable():
            return await self._line.ask(key)
        return (await self._read([key]))[0]

    async def _read(self, keys: Sequence[str]) -> list[list[Row]]:
        found: dict[str, list[Row]] = {key: [] for key in sorted(set(keys))}
        for row in await self._store.read(Query(self._statement, [(key,) for key in found])):
            if row[self._at] in found:  # SQLite reads a key only up to a NUL and may answer another one's row
                found[row[self._at]].append(row)
        return [found[key] for key in keys]

    async def aclose(self) -> None:
        await self._line.aclose()


ReadsByKey: TypeAlias = Mapping[str, Looks]  # by the name of their statement
