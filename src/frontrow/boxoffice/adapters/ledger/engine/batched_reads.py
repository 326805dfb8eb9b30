"""Reads by key in batches: lookups that many callers make at the same moment are sent as one statement.

A read is sent after it was requested, so it sees everything that was committed before the request. A key that a store
might reject is read alone, so its error reaches no other caller.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerReader
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.shared.coalescer import Coalescer

IN_FLIGHT: Final = 2


class BatchedReads:
    """Reads the rows of one statement by key. `key_column` is the column of a row that holds its key."""

    def __init__(
        self, store: LedgerReader, statement: str, key_column: int, *, max_batch: int, max_waiting: int
    ) -> None:
        self._store, self._statement, self._key_column = store, statement, key_column
        self._line: Coalescer[str, list[Row]] = Coalescer(
            self._read_batch, max_batch=max_batch, max_in_flight=IN_FLIGHT, max_waiting=max_waiting, name="ledger reads"
        )

    async def read(self, key: str) -> list[Row]:
        """The rows of this key."""
        if key.isascii() and key.isprintable():
            return await self._line.ask(key)
        return (await self._read_batch([key]))[0]

    async def _read_batch(self, keys: Sequence[str]) -> list[list[Row]]:
        found: dict[str, list[Row]] = {key: [] for key in sorted(set(keys))}
        for row in await self._store.read(Query(self._statement, [(key,) for key in found])):
            key = row[self._key_column]
            if key in found:  # SQLite reads a key only up to a NUL byte, and may return the row of another key
                found[key].append(row)
        return [found[key] for key in keys]

    async def aclose(self) -> None:
        await self._line.aclose()


class KeyedRead(Protocol):
    """Reads the rows of one statement by key."""

    async def read(self, key: str) -> list[Row]: ...


ReadsByKey: TypeAlias = Mapping[str, KeyedRead]  # by the name of their statement
