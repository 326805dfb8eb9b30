"""Used proofs of work: each proof counts once until it expires.

`MemoryUsedProofs` (one process) has two generations of ids and drops the older one when its proofs have expired. At its
cap it refuses new joins and evicts nothing. `RedisUsedProofs` (many processes) writes one expiring key per proof, in
batches.
"""

from collections.abc import Awaitable, Sequence
from typing import Any

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.shared.coalescer import Coalescer


class MemoryUsedProofs:
    """In this process only."""

    def __init__(self, *, generation_s: int = 600, max_ids: int = 2_000_000) -> None:
        self._generation_us = generation_s * US_PER_S
        self._max_ids = max_ids
        self._until_us: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._turn_us = 0

    def mark_used(self, proof_id: str, ttl_s: int, now_us: int) -> bool:
        """True for the first caller with this id."""
        if ttl_s * US_PER_S > self._generation_us:
            raise ValueError(f"a proof lives at most {self._generation_us // US_PER_S} s here, not {ttl_s}")
        if now_us >= self._turn_us:
            self._turn(now_us)
        until_us = self._until_us.get(proof_id) or self._older.get(proof_id, 0)
        if now_us < until_us:
            return False
        if len(self._until_us) + len(self._older) >= self._max_ids:
            raise Overloaded("too many joins at once; try again", retry_after_s=5)
        self._until_us[proof_id] = now_us + ttl_s * US_PER_S
        return True

    def _turn(self, now_us: int) -> None:
        """Start a new generation. The dropped ids were used more than a generation, so more than a ttl, ago."""
        long_quiet = now_us >= self._turn_us + self._generation_us
        self._older, self._until_us = {} if long_quiet else self._until_us, {}
        self._turn_us = now_us + self._generation_us


class RedisUsedProofs:
    """In Redis, shared by all processes of the room."""

    def __init__(self, client: Any, event: str) -> None:
        self._client = client
        self._prefix = f"room:{{{event}}}:spent:"
        self._coalescer: Coalescer[tuple[str, int], bool] = Coalescer(self._send, name="used proofs")

    def mark_used(self, proof_id: str, ttl_s: int, now_us: int) -> Awaitable[bool]:
        """True for the first caller with this id. Time is the store's."""
        return self._coalescer.submit((proof_id, ttl_s))

    async def _send(self, batch: Sequence[tuple[str, int]]) -> list[bool]:
        pipe = self._client.pipeline(transaction=False)
        for proof_id, ttl_s in batch:
            pipe.set(self._prefix + proof_id, b"1", nx=True, ex=max(1, ttl_s))
        try:
            return [bool(reply) for reply in await pipe.execute()]
        except Exception as error:
            raise Unavailable("the store of used proofs does not answer; try again", retry_after_s=1) from error

    async def aclose(self) -> None:
        await self._coalescer.aclose()
