"""One Redis server (or Cluster) of the claim store. Requests that arrive together travel as one script call.

Each new connection reads the identity of its server. A section's epoch names the server it was filled on. A restarted
or promoted server, which may have lost writes, therefore has another epoch and refuses until it is filled again.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redis.exceptions import NoScriptError, RedisError

from frontrow.boxoffice.adapters.claims.redis_encoding import (
    REQUEST_HEAD,
    STALE,
    ScriptReply,
    SeatRequest,
    SectionKeys,
    adopt_epoch,
    encode_time,
)
from frontrow.boxoffice.holds.model.claims import ClaimsLost
from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import call, call_many, connect, disconnect, is_cluster
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.redis_breaker import RedisBreaker

IDENTITY_CHARS = 12


@cache
def load_script(name: str) -> tuple[str, str]:
    """The source of a script and its SHA-1."""
    source = files("frontrow.boxoffice.adapters.claims").joinpath("lua", f"{name}.lua").read_text("utf-8")
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


class Shard:
    """A connection pool, a queue of requests, and the identity of the server."""

    def __init__(self, url: str, *, timeout_s: float, max_batch: int, max_waiting: int) -> None:
        self.cluster = is_cluster(url)
        self.identity = ""
        options: dict[str, Any] = {} if self.cluster else {"redis_connect_func": self._on_connect}
        self.client: Any = connect(url, timeout_s=timeout_s, **options)
        self.breaker = RedisBreaker("the seat store")
        self.requests: Coalescer[SeatRequest, Any] = Coalescer(
            self._send, max_batch=max_batch, max_waiting=max_waiting, name="seat claims"
        )

    async def _on_connect(self, connection: Any) -> None:
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        self.identity = _run_id(await connection.read_response())

    async def ask(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """The reply to `send()`, or an error for callers. One lost node of a Cluster stops only its own seats."""
        try:
            return await (send() if self.cluster else self.breaker.call(send))
        except (NoScriptError, Unavailable):
            raise
        except (RedisError, OSError) as error:
            raise unreachable_error(error) from error

    async def read_identity(self) -> str:
        """Ask the server, or all primaries of the Cluster, for its run id. The identity is part of the epoch."""
        return str(await self.ask(self._read_identity))

    async def _read_identity(self) -> str:
        if self.cluster:
            info = await self.client.info("server", target_nodes=self.client.PRIMARIES)
            nodes = info.values() if "run_id" not in info else [info]
            run_ids = ",".join(sorted(str(node["run_id"]) for node in nodes))
            self.identity = hashlib.sha256(run_ids.encode()).hexdigest()[:IDENTITY_CHARS]
        else:
            self.identity = _run_id(await call(self.client, "INFO", "server"))
        return self.identity

    async def read_with_identity(self, keys: Sequence[bytes]) -> tuple[list[bytes | None], str]:
        """The values of the keys and the identity of the server that has them, with one call. Not for a Cluster."""
        commands = [("MGET", *keys), ("INFO", "server")]
        values, info = await self.ask(lambda: call_many(self.client, commands))
        for reply in (values, info):
            if isinstance(reply, Exception):
                raise unreachable_error(reply)
        self.identity = _run_id(info)
        return list(values), self.identity

    async def get_identity(self) -> str:
        """The identity of the server, read once per connection."""
        return self.identity or await self.read_identity()

    async def run(self, name: str, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        """Call a script once. A server that does not have the script has not run it, so it is sent with its source."""
        source, sha = load_script(name)
        try:
            return await self.ask(lambda: call(self.client, "EVALSHA", sha, len(keys), *keys, *args))
        except NoScriptError:
            return await self.ask(lambda: call(self.client, "EVAL", source, len(keys), *keys, *args))

    def epoch_text(self, section: SectionKeys) -> str:
        return f"{section.epoch}:{self.identity}"

    async def _send(self, requests: Sequence[SeatRequest]) -> Sequence[Any]:
        """The result of each request. A request is sent again if another process has refilled its section meanwhile."""
        replies = await self._send_once(requests)
        stale = [at for at, reply in enumerate(replies) if type(reply) is bytes and reply.startswith(STALE)]
        if stale:
            replies = list(replies)
            for at in stale:
                adopt_epoch(requests[at].section, replies[at])
            again = await self._send_once([requests[at] for at in stale])
            for at, reply in zip(stale, again, strict=True):
                still_stale = type(reply) is bytes and reply.startswith(STALE)
                replies[at] = ClaimsLost(requests[at].section.event_id) if still_stale else reply
        return [request.read_reply(reply) for request, reply in zip(requests, replies, strict=True)]

    async def _send_once(self, requests: Sequence[SeatRequest]) -> Sequence[Any]:
        if not self.cluster:
            return await self._call(requests)
        by_section: dict[SectionKeys, list[int]] = {}  # a Cluster call stays in one slot: one call per section
        for at, request in enumerate(requests):
            by_section.setdefault(request.section, []).append(at)
        calls = [self._call([requests[at] for at in group]) for group in by_section.values()]
        replies: list[ScriptReply | BaseException] = [b""] * len(requests)
        results = await asyncio.gather(*calls, return_exceptions=True)
        for group, result in zip(by_section.values(), results, strict=True):
            for position, at in enumerate(group):
                replies[at] = result if isinstance(result, BaseException) else result[position]
        return replies

    async def _call(self, requests: Sequence[SeatRequest]) -> Sequence[ScriptReply]:
        if not self.identity:
            await self.read_identity()
        numbers: dict[SectionKeys, int] = {}
        keys: list[bytes] = []
        heads: list[bytes] = []
        values: list[bytes] = []
        now_us = 0
        pack = REQUEST_HEAD.pack
        for one in requests:
            number = numbers.get(one.section) or numbers.setdefault(one.section, len(numbers) + 1)
            heads.append(pack(one.op, number, len(one.keys), one.lifetime_ms, one.mark_from, one.mark_length))
            keys += one.keys
            values.append(one.value)
            if one.now_us > now_us:
                now_us = one.now_us
        epochs = [self.epoch_text(section) for section in numbers]
        keys[:0] = [section.epoch_key for section in numbers]
        args = [encode_time(now_us), len(numbers), *epochs, b"".join(heads), *values]
        replies: Sequence[ScriptReply] = await self.run("seats", keys, args)
        return replies

    async def aclose(self) -> None:
        await self.requests.aclose()
        await disconnect(self.client)


def unreachable_error(error: Exception) -> Unavailable:
    """The error for callers when the server did not answer in time."""
    return Unavailable(f"the seat store did not answer ({type(error).__name__}); try again", retry_after_s=1.0)


def _run_id(info: bytes | str) -> str:
    text = info.decode() if isinstance(info, bytes) else info
    return text.partition("run_id:")[2][:IDENTITY_CHARS]
