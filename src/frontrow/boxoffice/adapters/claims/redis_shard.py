"""One Redis server (or Cluster) under the claim store: everybody's asks of a moment travel as one script call.

Each new connection asks the server who it is. A section's epoch names the server it was filled on, so a restarted or
promoted server, which may have lost writes, is of another epoch and refuses until it is filled again.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError, RedisError

from frontrow.boxoffice.adapters.claims.redis_encoding import HEAD, STALE, Answer, Ask, SectionKeys, adopt
from frontrow.boxoffice.model.claims import ClaimsLost
from frontrow.core.coalescer import Coalescer
from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import call, connect, disconnect, is_cluster

IDENTITY_CHARS = 12


@cache
def script(name: str) -> tuple[str, str]:
    """A script's source and its SHA-1."""
    source = files("frontrow.boxoffice.adapters.claims").joinpath("lua", f"{name}.lua").read_text("utf-8")
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


class Shard:
    """A connection pool, a coalescer, and the identity of the server behind them."""

    def __init__(self, url: str, *, timeout_s: float, max_batch: int, max_waiting: int) -> None:
        self.cluster = is_cluster(url)
        self.identity = ""
        options: dict[str, Any] = {} if self.cluster else {"redis_connect_func": self._connected}
        self.client: Any = connect(url, timeout_s=timeout_s, **options)
        self.asks: Coalescer[Ask, Any] = Coalescer(
            self._send, max_batch=max_batch, max_waiting=max_waiting, name="seat claims"
        )

    async def _connected(self, connection: Any) -> None:
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        self.identity = _run_id(await connection.read_response())

    async def recognise(self) -> str:
        """Ask the server, or all primaries of the Cluster, who they are; the answer is part of the epoch."""
        try:
            if self.cluster:
                told = await self.client.info("server", target_nodes=self.client.PRIMARIES)
                each = told.values() if "run_id" not in told else [told]
                together = ",".join(sorted(str(one["run_id"]) for one in each))
                self.identity = hashlib.sha256(together.encode()).hexdigest()[:IDENTITY_CHARS]
            else:
                self.identity = str((await self.client.info("server"))["run_id"])[:IDENTITY_CHARS]
        except (RedisError, OSError) as error:
            raise unreachable(error) from error
        return self.identity

    async def recognised(self) -> str:
        """Who the server is, asked only once a connection."""
        return self.identity or await self.recognise()

    async def run(self, name: str, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        """One script call; the script is sent again where the server does not know it (it did not run then)."""
        source, sha = script(name)
        try:
            try:
                return await call(self.client, "EVALSHA", sha, len(keys), *keys, *args)
            except NoScriptError:
                return await call(self.client, "EVAL", source, len(keys), *keys, *args)
        except (RedisError, OSError) as error:
            raise unreachable(error) from error

    def epoch_text(self, section: SectionKeys) -> str:
        return f"{section.epoch}:{self.identity}"

    async def _send(self, asks: Sequence[Ask]) -> Sequence[Any]:
        """What each asker hears; asked once more where somebody else has filled a section under a newer epoch."""
        answers = await self._once(asks)
        old = [place for place, answer in enumerate(answers) if type(answer) is bytes and answer.startswith(STALE)]
        if old:
            answers = list(answers)
            for place in old:
                adopt(asks[place].section, answers[place])
            again = await self._once([asks[place] for place in old])
            for place, answer in zip(old, again, strict=True):
                stale = type(answer) is bytes and answer.startswith(STALE)
                answers[place] = ClaimsLost(asks[place].section.event_id) if stale else answer
        return [ask.told(answer) for ask, answer in zip(asks, answers, strict=True)]

    async def _once(self, asks: Sequence[Ask]) -> Sequence[Any]:
        if not self.cluster:
            return await self._call(asks)
        places: dict[SectionKeys, list[int]] = {}  # a Cluster call stays in one slot: one call a section
        for place, ask in enumerate(asks):
            places.setdefault(ask.section, []).append(place)
        calls = [self._call([asks[place] for place in own]) for own in places.values()]
        answers: list[Answer | BaseException] = [b""] * len(asks)
        for own, told in zip(places.values(), await asyncio.gather(*calls, return_exceptions=True), strict=True):
            for position, place in enumerate(own):
                answers[place] = told if isinstance(told, BaseException) else told[position]
        return answers

    async def _call(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        if not self.identity:
            await self.recognise()
        numbers: dict[SectionKeys, int] = {}
        keys: list[bytes] = []
        heads: list[bytes] = []
        values: list[bytes] = []
        now_us = 0
        pack = HEAD.pack
        for ask in asks:
            number = numbers.get(ask.section) or numbers.setdefault(ask.section, len(numbers) + 1)
            heads.append(pack(ask.op, number, len(ask.keys), ask.lifetime_ms, ask.mark_from, ask.mark_length))
            keys += ask.keys
            values.append(ask.value)
            if ask.now_us > now_us:
                now_us = ask.now_us
        epochs = [self.epoch_text(section) for section in numbers]
        keys[:0] = [section.epoch_key for section in numbers]
        args = [b"%016d" % now_us, len(numbers), *epochs, b"".join(heads), *values]
        answers: Sequence[Answer] = await self.run("seats", keys, args)
        return answers

    async def aclose(self) -> None:
        await self.asks.aclose()
        await disconnect(self.client)


def unreachable(error: Exception) -> Unavailable:
    """The error callers see when the server did not answer in time."""
    return Unavailable(f"the seat store did not answer ({type(error).__name__}); try again", retry_after_s=1.0)


def _run_id(told: bytes | str) -> str:
    text = told.decode() if isinstance(told, bytes) else told
    return text.partition("run_id:")[2][:IDENTITY_CHARS]
