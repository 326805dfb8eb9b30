"""The tiers of clients in Redis, with a copy in this process that is never older than a second while Redis answers.

A thread asks every `refresh_s` for what has changed, so a lookup is a dictionary lookup and never waits, except for the
first one, which waits for the first copy (at most `deadline_s`). When Redis does not answer, the copy stays as it is.
"""

import logging
import os
import threading
import weakref
from importlib.resources import files
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.redis_scripts import RedisScript
from frontrow.limits.quota import StoreDown

SCRIPT = files("frontrow.limits.stores").joinpath("lua/tiers.lua").read_text("utf-8")
MAX_PAGES = 10_000  # of one refresh; a page has a thousand clients
REFRESH_S = 0.4
_log = logging.getLogger("frontrow.limits")


class StoredTiers:
    """Which tier each client has, according to Redis. `source` is a URL or redis-py clients: see `RedisScript`."""

    def __init__(
        self,
        source: Any,
        name: str,
        *,
        prefix: str,
        deadline_s: float,
        refresh_s: float = REFRESH_S,
        **options: Any,
    ) -> None:
        base = f"{prefix}:tiers:{{{name}}}"
        self._keys = [base, f"{base}:changes", f"{base}:removed", f"{base}:meta"]
        self._script = RedisScript(source, SCRIPT, timeout_s=deadline_s, **options)
        self._deadline_s = deadline_s
        self._refresh_s = refresh_s
        self._lock = threading.Lock()
        self._tiers: dict[str, str] = {}
        self._position: tuple[str, ...] = ("0", "0", "0")  # birth, floor and version of what was read
        self._failing = False
        self._process = 0  # the process whose thread refreshes; 0: none yet
        self._loaded = threading.Event()
        self._closed = threading.Event()

    def get(self, client: str) -> str | None:
        if self._process != os.getpid():
            self._start()
        return self._tiers.get(client)

    def put(self, client: str, tier: str) -> None:
        self._change("put", client, tier)
        self._tiers[client] = tier

    async def aput(self, client: str, tier: str) -> None:
        await self._achange("put", client, tier)
        self._tiers[client] = tier

    def remove(self, client: str) -> None:
        self._change("remove", client)
        self._tiers.pop(client, None)

    async def aremove(self, client: str) -> None:
        await self._achange("remove", client)
        self._tiers.pop(client, None)

    def _change(self, *arguments: str) -> None:
        try:
            self._script.run(self._keys, arguments)
        except ConfigError:
            raise
        except Exception as error:
            raise _store_down(error) from error

    async def _achange(self, *arguments: str) -> None:
        try:
            await self._script.arun(self._keys, arguments)
        except ConfigError:
            raise
        except Exception as error:
            raise _store_down(error) from error

    def refresh(self) -> None:
        """Read what has changed since the last time. If Redis does not answer, log it once and keep the copy."""
        try:
            with self._lock:
                self._read_changes()
        except Exception as error:
            if not self._failing:
                self._failing = True
                _log.warning("the tiers could not be read, the last ones stay: %s: %s", type(error).__name__, error)
            return
        self._failing = False
        self._loaded.set()

    def _read_changes(self) -> None:
        tiers, position = self._tiers, self._position
        for _ in range(MAX_PAGES):
            reply = [_text(part) for part in self._script.run(self._keys, ["read", *position])]
            position, (more, forget), changes = tuple(reply[:3]), reply[3:5], reply[5:]
            if forget == "1":
                tiers = {}  # complete before anybody sees it
            for client, tier in zip(changes[::2], changes[1::2], strict=True):
                if tier:
                    tiers[client] = tier
                else:
                    tiers.pop(client, None)
            if more == "0":
                break
        self._tiers, self._position = tiers, position

    def _start(self) -> None:
        """Start the thread of this process, and wait for the first copy."""
        if self._process:  # forked: the parent's thread may have had the locks
            self._lock, loaded = threading.Lock(), self._loaded.is_set()
            self._loaded = threading.Event()
            if loaded:
                self._loaded.set()
        with self._lock:
            if self._process == os.getpid() or self._closed.is_set():
                return
            self._process = os.getpid()
        thread = threading.Thread(
            target=_keep_fresh,
            args=(weakref.ref(self), self._closed, self._refresh_s),
            name="frontrow tiers",
            daemon=True,
        )
        thread.start()
        self._loaded.wait(self._deadline_s)

    def close(self) -> None:
        """Stop refreshing and close the blocking connections. The copy stays."""
        self._closed.set()
        self._script.close()

    async def aclose(self) -> None:
        """`close`, and close the connections of the running event loop."""
        self._closed.set()
        await self._script.aclose()


def _keep_fresh(ref: "weakref.ref[StoredTiers]", closed: threading.Event, refresh_s: float) -> None:
    """Refresh until the tiers are closed or nobody refers to them any more."""
    while True:
        tiers = ref()
        if tiers is None or closed.is_set():
            return
        tiers.refresh()
        del tiers
        if closed.wait(refresh_s):
            return


def _store_down(error: Exception) -> StoreDown:
    return StoreDown(f"the tier was not changed, because its store failed: {type(error).__name__}: {error}")


def _text(part: object) -> str:
    return part.decode("utf-8", "surrogatepass") if isinstance(part, bytes) else str(part)
