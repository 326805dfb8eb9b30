"""Permits in Redis, shared by all servers. Each request is one script and one round trip, by the server's clock."""

import re
from hashlib import blake2b
from importlib.resources import files

from frontrow.core.errors import ConfigError
from frontrow.core.redis_scripts import RedisScript
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.permits import PLACE_TTL_US, PermitAnswer, PermitRequest

SCRIPT = files("frontrow.limits.stores").joinpath("lua/permits.lua").read_text("utf-8")


class RedisPermits:
    """The permits of one named limiter in Redis or Valkey at `url`, under keys starting with `prefix`."""

    def __init__(self, url: str, name: str, *, deadline_s: float, prefix: str = "frl") -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.:-]{1,64}", prefix):
            raise ConfigError(f"prefix must be 1 to 64 letters, digits, _ . : or -, not {prefix!r}", param="prefix")
        self._script = RedisScript(url, SCRIPT, timeout_s=deadline_s)
        self._prefix = f"{prefix}:permits:{name}:"

    def apply(self, request: PermitRequest) -> PermitAnswer:
        try:
            return _read_answer(self._script.run(self._keys(request.key), _arguments(request)))
        except Exception as error:
            raise _store_down(error) from error

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        try:
            return _read_answer(await self._script.arun(self._keys(request.key), _arguments(request)))
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
