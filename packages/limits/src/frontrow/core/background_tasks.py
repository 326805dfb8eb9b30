"""The one way to start work that nobody waits for. However it ends, somebody hears of it.

A task that is awaited gives its error to whoever awaits it. Every other task is started here: its failure is counted
and logged under the name of its job (`core.failures`). `hear_event_loop` does the same for what is reported to the
event loop itself: tasks whose error nobody read, callbacks and transports that failed. `carry_out` is between the two:
somebody awaits the work, and it goes on when that one is cancelled.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, TypeVar

from frontrow.core.failures import failures_here, failures_of, job_name

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
EVENT_LOOP: Final = "event loop"  # the job of what no job is named for

Result = TypeVar("Result")

_running: set["asyncio.Task[Any]"] = set()  # the event loop itself keeps no task alive


def start_task(work: Coroutine[Any, Any, Any], job: str, **ids: object) -> "asyncio.Task[None]":
    """Start `work`, which ends by itself. If it fails, that is noted as a failure of `job`."""
    task = _start(_run_once(work, job, ids), job)
    task.add_done_callback(lambda _: work.close())  # of a task that was cancelled before it began
    return task


def start_loop(run: Callable[[], Awaitable[Any]], job: str, **ids: object) -> "asyncio.Task[None]":
    """Start `run`, which goes on until it is cancelled or returns. If it fails, that is noted and it starts again."""
    failures_here().expect(job)
    return _start(keep_running(run, job, ids=ids), job)


async def carry_out(work: Coroutine[Any, Any, Result], job: str) -> Result:
    """Await `work`, which is done to its end also if the caller is cancelled meanwhile.

    Its error goes to the caller. If that one is gone, the error is noted as a failure of `job`.
    """
    task = _start(work, job)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(functools.partial(_note_unread, job))
        raise


def _note_unread(job: str, task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        failures_of(task.get_loop()).note(job, error)


def _start(work: Coroutine[Any, Any, Result], job: str) -> "asyncio.Task[Result]":
    task = asyncio.get_running_loop().create_task(work, name=job)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


async def _run_once(work: Coroutine[Any, Any, Any], job: str, ids: dict[str, object]) -> None:
    job_name.set(job)
    try:
        await work
    except Exception as error:
        failures_here().note(job, error, **ids)


async def keep_running(
    run: Callable[[], Awaitable[Any]],
    job: str,
    *,
    first_pause_s: float = FIRST_PAUSE_S,
    until: asyncio.Event | None = None,
    ids: Mapping[str, object] | None = None,
) -> None:
    """Run `run` until it returns. If it fails, note that and start it again after a pause that grows up to a bound.

    With `until`, start it again also after it returned, as long as that event is not set.
    """
    job_name.set(job)
    pause_s, loop, stopping = first_pause_s, asyncio.get_running_loop(), until or asyncio.Event()
    while not stopping.is_set():
        began_s = loop.time()
        try:
            await run()
            if until is None:
                return
        except Exception as error:
            failures_here().note(job, error, **(ids or {}))
        if loop.time() - began_s > LONGEST_PAUSE_S:
            pause_s = first_pause_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await stopping.wait()
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@contextlib.contextmanager
def hear_event_loop() -> Iterator[None]:
    """Until the block ends, note whatever is reported to the event loop because nobody else heard of it."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    failures_of(loop).expect(EVENT_LOOP)
    loop.set_exception_handler(_note_unheard)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


class _Unheard(Exception):
    """What was reported to the event loop without an error."""


def _note_unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    said = str(context.get("message", ""))
    task = context.get("task") or context.get("future")
    about = {"heard": said}
    if isinstance(task, asyncio.Task):
        about["task"] = task.get_name()
    failures_of(loop).note(EVENT_LOOP, context.get("exception") or _Unheard(said), **about)
