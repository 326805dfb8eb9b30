"""How long the request of a fan waits for the payment provider: 8 s, over all its calls.

A provider that accepts connections and never answers would otherwise keep the fan for as long as its client waits. When
the time is over, the call ends as an unknown outcome: the fan gets 202 with the seats kept, and the worker asks again
under the same key. What the first call did is then the answer, so nothing is paid twice. Workers and webhooks have the
provider's own limit, so a slow provider is still heard there.

The end of the wait goes with the task (a context variable): the port of a provider does not know who asks.
"""

import asyncio
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final

FAN_WAITS_S: Final = 8.0  # leaves two of the ten seconds in which everybody is answered to the ledger

_ends_s: ContextVar[float | None] = ContextVar("fan_wait_ends_s", default=None)


class FanWait:
    """`with FanWait():` bounds the calls to the provider inside the block. An outer wait goes on."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: Token[float | None] | None = None

    def __enter__(self) -> None:
        if _ends_s.get() is None:
            self._token = _ends_s.set(asyncio.get_running_loop().time() + FAN_WAITS_S)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._token is not None:
            _ends_s.reset(self._token)


def fan_wait_ends_s() -> float | None:
    """When the wait of this task ends, by its loop's clock. None: nobody waits."""
    return _ends_s.get()
