"""Wait for what happens by itself: in another task, thread, process or server.

`eventually` polls a condition, first at once, then after pauses that grow to `POLL_S`, and returns its first true
value. `eventually_sync` does the same without an event loop. Both give up after `within_s` seconds and then say what
was awaited and what the last poll found.

    await eventually(lambda: server.started)
    answer = await eventually(lambda: client.get("/"), until=lambda answer: answer.status_code == 200)
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

Found = TypeVar("Found")
WITHIN_S = 60.0
FIRST_POLL_S = 0.001
POLL_S = 0.02
MOST_SHOWN = 2_000

Errors = type[BaseException] | tuple[type[BaseException], ...]


@overload
async def eventually(
    condition: Callable[[], Awaitable[Found]],
    within_s: float = ...,
    *,
    until: Callable[[Found], Any] = ...,
    ignoring: Errors = ...,
    every_s: float = ...,
) -> Found: ...


@overload
async def eventually(
    condition: Callable[[], Found],
    within_s: float = ...,
    *,
    until: Callable[[Found], Any] = ...,
    ignoring: Errors = ...,
    every_s: float = ...,
) -> Found: ...


async def eventually(
    condition: Callable[[], Any],
    within_s: float = WITHIN_S,
    *,
    until: Callable[[Any], Any] = bool,
    ignoring: Errors = (),
    every_s: float = POLL_S,
) -> Any:
    """The first value of `condition()`, or of what it awaits, for which `until(value)` is true.

    Errors in `ignoring` mean "not yet"; all others end the wait. Time is the event loop's.
    """
    poll = _Poll(condition, until, within_s, every_s, asyncio.get_running_loop().time)
    while True:
        try:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if poll.is_over(value):
                return value
        except ignoring as error:
            poll.saw(error)
        await asyncio.sleep(poll.pause_s())


def eventually_sync(
    condition: Callable[[], Found],
    within_s: float = WITHIN_S,
    *,
    until: Callable[[Found], Any] = bool,
    ignoring: Errors = (),
    every_s: float = POLL_S,
) -> Found:
    """`eventually` for tests without an event loop: blocks the thread."""
    poll = _Poll(condition, until, within_s, every_s, time.monotonic)
    while True:
        try:
            value = condition()
            if poll.is_over(value):
                return value
        except ignoring as error:
            poll.saw(error)
        time.sleep(poll.pause_s())


class _Poll:
    """One wait: when it ends, how long the next pause is, what the last poll found."""

    def __init__(
        self,
        condition: Callable[[], Any],
        until: Callable[[Any], Any],
        within_s: float,
        every_s: float,
        clock_s: Callable[[], float],
    ) -> None:
        self._condition, self._until, self._within_s, self._every_s = condition, until, within_s, every_s
        self._clock_s, self._deadline_s = clock_s, clock_s() + within_s
        self._next_s = FIRST_POLL_S
        self._last: Any = None

    def is_over(self, value: Any) -> bool:
        self._last = value
        return bool(self._until(value))

    def saw(self, error: BaseException) -> None:
        self._last = error

    def pause_s(self) -> float:
        left_s = self._deadline_s - self._clock_s()
        if left_s <= 0:
            raise AssertionError(f"not within {self._within_s:g} s: {self._awaited()}\nlast: {_shown(self._last)}")
        pause_s = min(self._next_s, self._every_s, left_s)
        self._next_s *= 2
        return pause_s

    def _awaited(self) -> str:
        """The code of the condition, and of what it is compared with."""
        parts: list[Callable[..., Any]] = [self._condition] if self._until is bool else [self._condition, self._until]
        given = {name: value for part in parts for name, value in _given(part).items()}
        said = [*dict.fromkeys(_source(part) for part in parts), *(f"{name} = {given[name]!r}" for name in given)]
        return "\n".join(said)


def _source(part: Callable[..., Any]) -> str:
    try:
        return inspect.cleandoc(inspect.getsource(part)).strip()
    except (OSError, TypeError):  # not written in Python
        return repr(part)


def _given(part: Callable[..., Any]) -> dict[str, Any]:
    """The plain values that a condition takes from the test around it."""
    if not inspect.isfunction(part):
        return {}
    given = inspect.getclosurevars(part).nonlocals
    return {name: value for name, value in given.items() if isinstance(value, str | int | float | bytes)}


def _shown(value: Any) -> str:
    """An HTTP answer by its status and text; everything else as it prints itself."""
    text = f"{value.status_code} {value.text}" if hasattr(value, "status_code") else repr(value)
    return text[:MOST_SHOWN]
