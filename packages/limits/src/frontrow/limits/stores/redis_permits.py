"""Permits in Redis, shared by all servers. Each request is one script and one round trip, by the server's clock."""

from hashlib import blake2b
from importlib.resources import files
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.redis_scripts import RedisScript
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.permits import PLACE_TTL_US, PermitAnswer, PermitRequest
from frontrow.limits.stores.protocol import DEFAULT_PREFIX, check_prefix

SCRIPT = files("frontrow.limits.stores").joinpath("lua/permits.lua").read_text("utf-8")


class RedisPermits:
    """The permits of one named limiter in Redis or Valkey, under keys starting with `prefix`.

    `source` is a URL or redis-py clients: see `RedisScript`.
    """

    def __init__(
        self, source: Any, name: str, *, deadline_s: float, prefix: str = DEFAULT_PREFIX, **options: Any
    ) -> None:
        self._script = RedisScript(source, SCRIPT, timeout_s=deadline_s, **options)
        self._prefix = f"{check_prefix(prefix)}:permits:{name}:"

    def apply(self, request: PermitRequest) -> PermitAnswer:
        try:
            return _read_answer(self._script.run(self._keys(request.key), _arguments(request)))
        except ConfigError:
            raise
        except Exception as error:
            raise _store_down(error) from error

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        try:
            return _read_answer(await self._script.arun(self._keys(request.key), _arguments(request)))
        except ConfigError:
            raise
        except Exception as error:
            raise _store_down(error) from error

    def _keys(self, key: StoreKey) -> list[str]:
        """The three keys of a client. The braces put them into one slot of a Cluster."""
        raw = b"=" + key if isinstance(key, bytes) else b"~" + key.encode("utf-8", "surrogatepass")
        digest = blake2b(raw, digest_size=20).hexdigest()
        base = self._prefix + "{" + digest + "}"
        return [base, base + ":line", base + ":places"]

    def close(self) -> None:
        self._script.close()

    async def aclose(self) -> None:
        await self._script.aclose()


def _arguments(request: PermitRequest) -> list[str | int]:
    now_us = -1 if request.now_us is None else request.now_us
    numbers = (request.limit, request.ttl_us, request.max_waiting, now_us, PLACE_TTL_US)
    return [request.op, request.permit, *numbers]


def _read_answer(reply: list[int]) -> PermitAnswer:
    done, in_use, ahead = reply
    return PermitAnswer(done == 1, in_use, ahead)


def _store_down(error: Exception) -> StoreDown:
    return StoreDown(f"the permit store failed: {type(error).__name__}: {error}")
