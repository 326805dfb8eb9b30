"""The audit log: append-only entries, each with the hash of the previous one, so that any change is detected.

Every writer connection has its own chain, because a shared one would make all writers wait for each other. It gets one
entry per transaction: the facts of the transaction in order. The newest hash of a chain is its head. With a head stored
elsewhere, it can be proved later that nothing before it was changed or cut off.
"""

import hashlib
from collections.abc import Iterator
from typing import Final

import msgspec

GENESIS: Final = "0" * 64


class AuditEntry(msgspec.Struct, frozen=True):
    """One transaction's facts in a chain."""

    chain: str
    seq: int
    at_us: int
    body: str
    prev_hash: str
    hash: str


def entry_hash(chain: str, seq: int, at_us: int, body: str, prev_hash: str) -> str:
    """The hash over an entry's fields and the previous hash."""
    return hashlib.sha256(f"{prev_hash}\n{chain}\n{seq}\n{at_us}\n{body}".encode()).hexdigest()


class Chain:
    """A writer's chain. It makes the next entry, and advances only when that entry is committed."""

    __slots__ = ("hash", "name", "seq")

    def __init__(self, name: str) -> None:
        self.name, self.seq, self.hash = name, 0, GENESIS

    def next(self, at_us: int, body: str) -> AuditEntry:
        """The next entry. The chain does not advance yet."""
        seq = self.seq + 1
        return AuditEntry(self.name, seq, at_us, body, self.hash, entry_hash(self.name, seq, at_us, body, self.hash))

    def committed(self, entry: AuditEntry) -> None:
        assert entry.prev_hash == self.hash, "entries of one chain are committed in order"
        self.seq, self.hash = entry.seq, entry.hash


def problems(entry: AuditEntry, before_seq: int, before_hash: str) -> Iterator[str]:
    """The problems of an entry, given the previous one in its chain."""
    where = f"chain {entry.chain}, entry {entry.seq}"
    if entry.seq != before_seq + 1:
        yield f"{where}: entry {before_seq + 1} is missing"
    elif entry.prev_hash != before_hash:
        yield f"{where}: does not follow the entry before it"
    if entry.hash != entry_hash(entry.chain, entry.seq, entry.at_us, entry.body, entry.prev_hash):
        yield f"{where}: was changed after it was written"
