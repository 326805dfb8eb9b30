"""`AdaptiveLimit`: as many at once as can be served without a queue, found by measuring, and who goes first.

    limit = AdaptiveLimit("search")
    async with limit.acquire("critical"): ...
    with limit.acquire("background"): ...

A caller that finds no room waits for at most `max_wait_s` and then gets `Shed`. One limit may be used by threads and by
several event loops at once. A forked child begins with nothing in flight and keeps what was learnt.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, TypedDict, TypeVar

from frontrow.core.clock import US_PER_S, Clock, SystemClock, steady
from frontrow.core.errors import ConfigError, Overloaded
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.core.log_line import LIMITS_SHEDDING, LIMITS_SHEDDING_OVER
from frontrow.limits.adaptive.class_shares import CLASSES, ClassShares
from frontrow.limits.adaptive.controllers import Controller, GradientLimit, LimitState, LoadSample
from frontrow.limits.adaptive.load_meter import Ended, LoadMeter
from frontrow.limits.adaptive.waiting_callers import WaitingCaller, WaitingCallers
from frontrow.limits.durations import check_seconds

DROPS: Final = (TimeoutError, ConnectionError, Overloaded)
MAX_WAITING: Final = 10_000
MAX_PARTITIONS: Final = 1_000
CALM_US: Final = 5 * US_PER_S  # without a shed request; then shedding is over

Function = TypeVar("Function", bound=Callable[..., Any])


class Shed(Overloaded):
    """There was no room for this call. Try again after `retry_after_s`."""

    code = "shed"


class LimitOptions(TypedDict, total=False):
    """What every adaptive limit takes."""

    controller: Controller | None
    classes: Mapping[str, float]
    partitions: Mapping[str, float] | None
    max_wait_s: float
    max_waiting: int
    retry_after_s: float
    drops: Sequence[type[BaseException]]
    clock: Clock | None


class Slot:
    """One of those in flight. Release it exactly when the work ends, or use the limit's `acquire`."""

    __slots__ = ("_limit", "began_us", "is_held", "life", "partition", "rank")

    def __init__(self, limit: "AdaptiveLimit", rank: int, partition: str | None, began_us: int, life: int) -> None:
        self._limit, self.rank, self.partition, self.began_us, self.life = limit, rank, partition, began_us, life
        self.is_held = True

    def release(self, how: Ended = Ended.WELL) -> None:
        """Give the slot back and say how the work ended. Repeating it is harmless."""
        self._limit.release(self, how)


class SlotBlock:
    """What `limit.acquire(…)` returns, for `with` and `async with`."""

    __slots__ = ("_limit", "_partition", "_rank", "_slot")

    def __init__(self, limit: "AdaptiveLimit", rank: int, partition: str | None) -> None:
        self._limit, self._rank, self._partition = limit, rank, partition
        self._slot: Slot | None = None

    def __enter__(self) -> Slot:
        self._slot = self._limit.enter(self._rank, self._partition)
        return self._slot

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            self._limit.release(slot, self._limit.judge(error))

    async def __aenter__(self) -> Slot:
        self._slot = await self._limit.aenter(self._rank, self._partition)
        return self._slot

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, tb)  # nothing is awaited, so no cancellation comes between


class AdaptiveLimit:
    """As many at once as can be served without a queue. Create it once per service or dependency and share it.

    `classes` are the classes of requests with their shares of the limit, the one that is shed first in front.
    `partitions` are guaranteed shares for groups of callers: with `{"web": 0.6}` callers of "web" are admitted up to
    60 % of the limit even when others have filled it. An exception of `drops` counts as a sign of overload.
    """

    def __init__(
        self,
        name: str = "default",
        *,
        controller: Controller | None = None,
        classes: Mapping[str, float] = CLASSES,
        partitions: Mapping[str, float] | None = None,
        max_wait_s: float = 0.1,
        max_waiting: int = 100,
        retry_after_s: float = 1.0,
        drops: Sequence[type[BaseException]] = DROPS,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._ranks = {each: rank for rank, each in enumerate(_check_classes(classes))}
        self._partitions = _check_partitions(partitions or {})
        self._max_wait_s = check_seconds("max_wait_s", max_wait_s, 0, 60)
        self.retry_after_s = check_seconds("retry_after_s", retry_after_s, 0, 3600)
        if type(max_waiting) is not int or not 0 <= max_waiting <= MAX_WAITING:
            raise ConfigError(f"max_waiting must be a whole number from 0 to {MAX_WAITING}, not {max_waiting!r}")
        self._drops = tuple(drops)
        self._clock = steady(clock or SystemClock())
        self._controller = controller or GradientLimit()
        self._state = self._controller.start(len(classes))
        self._shares = ClassShares(tuple(classes.values()), self._state.limit)
        self._lock = fork_safe_lock()
        self._waiting: WaitingCallers[Slot] = WaitingCallers(len(classes), max_waiting if max_wait_s else 0)
        self.admitted, self.shed_counts, self.drop_counts = ([0] * len(classes) for _ in range(3))
        self._life = 0
        self._begin()
        begin_in_child(self._begin)

    def _begin(self) -> None:
        """Nothing is in flight and nobody waits: at first, and in a forked child, whose parent has them."""
        self._life += 1
        self._meter = LoadMeter(len(self._ranks), self._clock())
        self._in_partition = dict.fromkeys(self._partitions, 0)
        self._waiting.clear()
        self._shed_at_us: int | None = None  # the last time that somebody was shed; None: shedding is over

    # -- what it is now ------------------------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """How many are allowed at once."""
        return int(self._state.limit)

    @property
    def in_flight(self) -> int:
        return self._meter.total

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def classes(self) -> list[str]:
        """The classes of requests, the one that is shed first in front."""
        return list(self._ranks)

    @property
    def baselines_s(self) -> dict[str, float]:
        """The latency without a queue, by class; 0 if it is not known."""
        return dict(zip(self._ranks, self._state.baselines_s, strict=True))

    # -- taking --------------------------------------------------------------------------------------------------

    def acquire(self, priority: str = "normal", *, partition: str | None = None) -> SlotBlock:
        """For `with` and `async with`: a slot for the block. `Shed` if there is none within `max_wait_s`."""
        return SlotBlock(self, self.rank_of(priority), self._check_partition(partition))

    def try_acquire(self, priority: str = "normal", *, partition: str | None = None) -> Slot | None:
        """A slot if there is one now, else `None`. Release it yourself."""
        rank = self.rank_of(priority)
        slot = self._try(rank, self._check_partition(partition))
        if slot is None:
            self._count_shed(rank)
        return slot

    def limited(self, priority: str = "normal", *, partition: str | None = None) -> Callable[[Function], Function]:
        """A decorator for functions and coroutine functions: each call takes a slot."""
        rank, partition = self.rank_of(priority), self._check_partition(partition)

        def decorate(function: Function) -> Function:
            if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
                raise ConfigError("limited() is for functions and coroutine functions; use acquire() in a generator")
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def acall(*args: Any, **kwargs: Any) -> Any:
                    async with SlotBlock(self, rank, partition):
                        return await function(*args, **kwargs)

                return acall  # type: ignore[return-value]

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with SlotBlock(self, rank, partition):
                    return function(*args, **kwargs)

            return call  # type: ignore[return-value]

        return decorate

    def rank_of(self, priority: str) -> int:
        """The number of a class."""
        rank = self._ranks.get(priority)
        if rank is None:
            raise ConfigError(f"priority must be one of {', '.join(self._ranks)}, not {priority!r}", param="priority")
        return rank

    def enter(self, rank: int, partition: str | None = None) -> Slot:
        """A slot for a class by its number; the thread waits for it."""
        slot = self._try(rank, partition)
        if slot is not None:
            return slot
        woken = threading.Event()
        caller: WaitingCaller[Slot] = WaitingCaller(rank, partition, woken.set)
        try:
            if self._line_up(caller):
                woken.wait(self._max_wait_s)
            return self._taken(caller)
        except BaseException:
            self._give_up(caller)
            raise

    async def aenter(self, rank: int, partition: str | None = None) -> Slot:
        """`enter` for asyncio."""
        slot = self._try(rank, partition)
        if slot is not None:
            return slot
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        caller: WaitingCaller[Slot] = WaitingCaller(rank, partition, lambda: loop.call_soon_threadsafe(_resolve, woken))
        timer = loop.call_later(self._max_wait_s, _resolve, woken)
        try:
            if self._line_up(caller):
                await woken
            return self._taken(caller)
        except BaseException:
            self._give_up(caller)
            raise
        finally:
            timer.cancel()

    # -- giving back ---------------------------------------------------------------------------------------------

    def release(self, slot: Slot, how: Ended = Ended.WELL) -> None:
        """Give a slot back, and measure. Those who wait get it, the highest class first."""
        with self._lock:
            if not slot.is_held or slot.life != self._life:  # given back before, or of the process that forked this one
                return
            slot.is_held = False
            now_us = self._clock()
            if slot.partition is not None:
                self._in_partition[slot.partition] -= 1
            if how is Ended.DROPPED:
                self.drop_counts[slot.rank] += 1
            sample = self._meter.left(slot.rank, slot.began_us, now_us, how)
            if sample is not None:
                self._adapt(sample, now_us)
            served = self._give_slots(now_us) if len(self._waiting) else []
            is_over = self._shed_at_us is not None and now_us - self._shed_at_us > CALM_US
            if is_over:
                self._shed_at_us = None
        if is_over:
            LIMITS_SHEDDING_OVER(limiter=self.name, at_once=self.limit)
        self._wake(served)

    def judge(self, error: BaseException | None) -> Ended:
        """How a block that ended with `error` counts."""
        if error is None:
            return Ended.WELL
        if isinstance(error, self._drops):
            return Ended.DROPPED
        return Ended.UNFINISHED if isinstance(error, asyncio.CancelledError) else Ended.IGNORED

    # -- inside --------------------------------------------------------------------------------------------------

    def _try(self, rank: int, partition: str | None) -> Slot | None:
        with self._lock:
            return self._slot(rank, partition, self._clock()) if self._admits(rank, partition) else None

    def _line_up(self, caller: WaitingCaller[Slot]) -> bool:
        """Put a caller in line, or give it a slot that became free meanwhile. Whether it has to wait."""
        with self._lock:
            if self._admits(caller.rank, caller.partition):
                caller.slot = self._slot(caller.rank, caller.partition, self._clock())
                return False
            gives_way = self._waiting.add(caller)
        if gives_way is not None and gives_way is not caller:
            self._wake([gives_way])  # it finds that it has no slot
        return gives_way is not caller

    def _taken(self, caller: WaitingCaller[Slot]) -> Slot:
        """The slot that a caller was given while it waited. `Shed` if it was given none."""
        with self._lock:
            self._waiting.remove(caller)
            slot = caller.slot
        if slot is not None:
            return slot
        self._count_shed(caller.rank)
        raise Shed(f"{self.name}: no room for more than {self.limit} at once", retry_after_s=self.retry_after_s)

    def _give_up(self, caller: WaitingCaller[Slot]) -> None:
        """A caller leaves: it was cancelled or shed. A slot that it was given meanwhile goes to somebody else."""
        with self._lock:
            self._waiting.remove(caller)
            slot = caller.slot
        if slot is not None:
            self.release(slot, Ended.IGNORED)

    def _admits(self, rank: int, partition: str | None) -> bool:
        if self._shares.admits(rank, self._meter.total, 0.0):
            return True
        if partition is None:
            return False
        guaranteed = self._partitions[partition] * self._shares.bounds[rank]
        return self._in_partition[partition] + 1 <= guaranteed

    def _slot(self, rank: int, partition: str | None, now_us: int) -> Slot:
        self._meter.entered(rank, now_us)
        self.admitted[rank] += 1
        if partition is not None:
            self._in_partition[partition] += 1
        return Slot(self, rank, partition, now_us, self._life)

    def _adapt(self, sample: LoadSample, now_us: int) -> None:
        before: LimitState = self._state
        self._state = self._controller.next(before, sample)
        self._shares.resize(self._state.limit)
        self._meter.changed(before.limit, self._state.limit, sample, now_us)

    def _give_slots(self, now_us: int) -> list[WaitingCaller[Slot]]:
        """Give what is free to those who wait, the highest class first and in it the newest."""
        served = []
        for caller in self._waiting.newest_first():
            if self._admits(caller.rank, caller.partition):
                caller.slot = self._slot(caller.rank, caller.partition, now_us)
                served.append(caller)
            elif not self._partitions:
                break  # lower classes find no room either
        for caller in served:
            self._waiting.remove(caller)
        return served

    def _wake(self, callers: list[WaitingCaller[Slot]]) -> None:
        for caller in callers:
            try:
                caller.wake()
            except RuntimeError:  # its event loop has ended
                self._give_up(caller)

    def _count_shed(self, rank: int) -> None:
        with self._lock:
            began = self._shed_at_us is None
            self._shed_at_us = self._clock()
            self.shed_counts[rank] += 1
            self._meter.shed()
        if began:
            LIMITS_SHEDDING(limiter=self.name, at_once=self.limit)

    def _check_partition(self, partition: str | None) -> str | None:
        if partition is not None and partition not in self._partitions:
            known = ", ".join(self._partitions) or "none; name them in partitions="
            raise ConfigError(f"partition {partition!r} is not known ({known})", param="partition")
        return partition


def _resolve(woken: "asyncio.Future[None]") -> None:
    if not woken.done():
        woken.set_result(None)


def _check_classes(classes: Mapping[str, float]) -> list[str]:
    shares = list(classes.values()) if isinstance(classes, Mapping) else []
    if not shares or sorted(shares) != shares or not shares[0] > 0 or shares[-1] != 1:
        example = '{"background": 0.5, "normal": 0.8, "critical": 1.0}'
        message = f"classes must be shares of the limit that rise to 1, like {example}; not {classes!r:.200}"
        raise ConfigError(message, param="classes")
    return list(classes)


def _check_partitions(partitions: Mapping[str, float]) -> dict[str, float]:
    shares = list(partitions.values())
    if len(shares) > MAX_PARTITIONS or any(not 0 < share <= 1 for share in shares) or sum(shares) > 1 + 1e-9:
        message = f'partitions must be shares that sum up to at most 1, like {{"web": 0.6}}; not {partitions!r:.200}'
        raise ConfigError(message, param="partitions")
    return dict(partitions)
