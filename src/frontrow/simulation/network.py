"""The simulated network between processes and what they share, with its faults; and the shared stores behind it.

A call takes a moment to arrive and a moment to be answered. The seed's stream of faults decides what happens to it: it
is lost before it was carried out, its answer is lost, it is slow, or it is carried out twice. A store that is away
loses every call. What a store does, it does as its own process: a caller that crashes stops nothing.
"""

import asyncio
import contextvars
import copy
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from frontrow.boxoffice.adapters.bus.memory import MemoryBus, MemoryReader
from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.facts.model import BusFact
from frontrow.boxoffice.holds.model.claims import TakenSeat
from frontrow.boxoffice.payments.model.provider_intents import ProviderUnknown
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock
from frontrow.core.errors import Unavailable
from frontrow.limits import Limiter, Rule
from frontrow.limits.quota import StoreDown
from frontrow.limits.stats import Stats
from frontrow.limits.stores.memory import MemoryStore
from frontrow.limits.stores.protocol import QuotaSlot, StoreRequest, StoreResult
from frontrow.limits.stores.resilient import SharedStore
from frontrow.shared.coalescer import ResultSlot, move_result
from frontrow.simulation.loop import PROCESS, SeededLoop, set_error, set_result
from frontrow.simulation.scene import SHARED_PER_PERSON
from frontrow.waitingroom.stores.memory import MemoryRoomStore

LEDGER, REPLICA, REDIS, PROVIDER, MAIL, ROOM_AUDIT = "ledger", "replica", "redis", "provider", "mail", "room audit"
LIMIT_SLOTS: Final = (QuotaSlot(Rule("buyers", SHARED_PER_PERSON), "", SHARED_PER_PERSON),)
CLAIM_WRITES, ROOM_WRITES = ("claim", "claim_best", "put", "begin to fill", "end filling"), ("join", "visit", "slide")
NEED_MEMORY: Final = frozenset(
    (*CLAIM_WRITES, *ROOM_WRITES, "create", "lift", "take_lead", "configure", "publish", "count")
)
AT_ONCE: Final = frozenset({LEDGER, REPLICA, REDIS, MAIL})  # they carry out each call in one step
WAYS_S: Final = (0.001, 0.001, 0.002, 0.005, 0.02)
BACK_S: Final = (0.0, 0.0, 0.0, 0.002, 0.01)


class Fate(StrEnum):
    """What happens to one call."""

    WELL = "well"
    LOST = "lost"  # before it was carried out
    UNANSWERED = "unanswered"  # carried out
    SLOW = "slow"
    DOUBLED = "doubled"


class Lost(Exception):
    """No answer came."""


class Network:
    """Carries calls. `rate` is the share of calls that something happens to; `away` are the stores that answer nobody;
    `cut` are the pairs of process and store that do not reach each other."""

    def __init__(self, loop: SeededLoop, seed: int, rate: float) -> None:
        self._loop, self.rate = loop, rate
        self._faults = random.Random(f"faults {seed}")
        self._delays = random.Random(f"delays {seed}")
        self._contexts: dict[str, contextvars.Context] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.away: set[str] = set()
        self.cut: set[tuple[str, str]] = set()
        self.severed: Counter[str] = Counter()  # how often every connection of a store broke
        self.scripts_known: set[str] = set()  # processes whose scripts Redis has
        self.fates: Counter[str] = Counter()  # what happened to calls, but for those that went well
        self.begun: list[Any] = []  # coroutines, of which a crashed process may never take the first step

    def context_of(self, process: str) -> contextvars.Context:
        """The context in which the tasks of a process run."""
        if process not in self._contexts:
            context = contextvars.Context()
            context.run(PROCESS.set, process)
            self._contexts[process] = context
        return self._contexts[process]

    def is_dead(self, process: str) -> bool:
        """Whether this process has crashed."""
        return process in self._loop.dead

    def _fate(self, target: str) -> Fate:
        caller = PROCESS.get().partition(".")[0]
        if target in self.away or (caller, target) in self.cut:
            return Fate.LOST
        if self._faults.random() >= self.rate:
            return Fate.WELL
        return self._faults.choice((Fate.LOST, Fate.UNANSWERED, Fate.UNANSWERED, Fate.SLOW, Fate.DOUBLED))

    async def call(self, target: str, what: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of `act`, which the target carries out; `Lost` if no answer comes."""
        fate = self._fate(target)
        if fate is not Fate.WELL:
            self.fates[f"a call of {target.rstrip('0123456789.')} {fate}"] += 1
        draw = self._delays.random
        way_s, back_s = WAYS_S[int(draw() * len(WAYS_S))], BACK_S[int(draw() * len(BACK_S))]
        if fate is Fate.SLOW:
            way_s += self._delays.choice((0.3, 2.0, 12.0))
        if target == REDIS and (caller := PROCESS.get()) not in self.scripts_known:
            self.scripts_known.add(caller)
            await self._loop.pause(2 * way_s)  # NOSCRIPT: the same call comes again, with the script
        if fate is Fate.LOST:
            await self._loop.pause(way_s + self._delays.choice((0.01, 0.5, 1.0)))
            self._loop.trace.add(f"{PROCESS.get()} {target} {what} lost")
            raise Lost(f"{target}: {what}: no answer")
        done, connection = asyncio.Future[Any](loop=self._loop), self.severed[target]
        carry_out = self._do if target in AT_ONCE else self._start
        given = target, act, done, fate is Fate.DOUBLED, back_s
        self._loop.call_later(way_s, carry_out, *given, context=self.context_of(target))
        try:
            answer = await done
        except Exception as error:
            self._loop.trace.add(f"{PROCESS.get()} {target} {what} {type(error).__name__}")
            raise
        self._loop.trace.add(f"{PROCESS.get()} {target} {what} {fate}")
        if connection != self.severed[target]:
            self.fates[f"a connection of {target} broke after a call was carried out"] += 1
            raise Lost(f"{target}: {what}: the connection broke")
        if fate is Fate.UNANSWERED:
            await self._loop.pause(self._delays.choice((0.01, 1.0)))
            raise Lost(f"{target}: {what}: the answer was lost")
        return answer

    def _do(self, target: str, act: Any, done: "asyncio.Future[Any]", again: bool, back_s: float) -> None:
        """Carry out a call of a store that does each in one step. Its answer is on its way for `back_s`."""
        settle: Callable[[asyncio.Future[Any], Any], None]
        outcome: Any
        try:
            answer = result_at_once(act())
            if again:
                answer = result_at_once(act())
        except Exception as error:
            settle, outcome = set_error, error
        else:
            settle, outcome = set_result, answer
        if back_s:
            self._loop.call_later(back_s, settle, done, outcome)
        else:
            settle(done, outcome)

    def _start(self, target: str, act: Any, done: "asyncio.Future[Any]", again: bool, back_s: float) -> None:
        """Carry out a call in a task of the target's."""
        work = self._carry_out(act, done, again=again, back_s=back_s)
        self.begun.append(work)
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(
        self, act: Callable[[], Awaitable[Any]], done: "asyncio.Future[Any]", *, again: bool, back_s: float
    ) -> None:
        try:
            answer = await act()
            if again:
                answer = await act()
        except Exception as error:
            set_error(done, error)
            return
        if back_s:
            await self._loop.pause(back_s)
        set_result(done, answer)


def result_at_once(work: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("this store waits for something: it does not carry out calls in one step")


class RedisServer:
    """What all servers share in memory: claims, the waiting room, the bus. It can lose its last seconds or everything.

    The claims of a Redis that was restarted are not trusted until they are filled from the ledger; a failover that
    nobody notices loses the newest claims in silence. Either way connections break: readers of the bus must come anew.
    """

    is_full = False  # it refuses what needs memory

    def __init__(self, clock: Callable[[], int], groups: Sequence[str]) -> None:
        self.claims, self.rooms = MemoryClaims(), MemoryRoomStore(clock)
        self._groups = groups
        self.bus = MemoryBus(groups)
        self.readers: list[MemoryReader] = []  # those that are open
        self.limits = MemoryStore(LIMIT_SLOTS, clock)
        self.limits_lost_us: list[int] = []  # when it forgot how much was used
        self._clock = clock
        self._kept: tuple[Any, Any, KeptBus] | None = None

    def check_memory(self, what: str) -> None:
        """Refuse a write that needs memory, as the adapters tell it: `OOM` is an error of Redis like others."""
        if self.is_full and what in NEED_MEMORY:
            raise Unavailable("OOM command not allowed", retry_after_s=1.0)

    def keep(self) -> None:
        """What a replica has by now."""
        self._kept = (*copy.deepcopy((self._taken(), self.rooms._rooms)), KeptBus(self.bus, self.readers))

    def _taken(self) -> dict[str, tuple[dict[int, TakenSeat], bool]]:
        return {name: (one.taken, one.filled) for name, one in self.claims._events.items()}

    def lose_everything(self) -> None:
        for one in self.claims._events.values():
            one.taken, one.filled = {}, False
        self.rooms._rooms.clear()
        self.bus = MemoryBus()
        self._forget_limits()

    def lose_newest(self, *, noticed: bool) -> None:
        """Go back to what the replica had."""
        if self._kept is None:
            return
        taken, rooms = copy.deepcopy(self._kept[:2])
        for name, (seats, filled) in taken.items():
            self.claims._events[name].taken, self.claims._events[name].filled = seats, filled and not noticed
        self.rooms._rooms = rooms
        self.bus = self._kept[2].restored()
        self._forget_limits()  # all of it, which is worse than the newest

    def _forget_limits(self) -> None:
        self.limits = MemoryStore(LIMIT_SLOTS, self._clock)
        self.limits_lost_us.append(self._clock())


class KeptBus:
    """What a replica has of the bus: the facts, and those that each group has not finished."""

    def __init__(self, bus: MemoryBus, readers: Sequence[MemoryReader]) -> None:
        self._log = list(bus._log)
        self._unfinished = {
            name: [fact for one in readers if one._group is group for fact in one._in_progress.values()] + [*group.line]
            for name, group in bus._groups.items()
        }

    def restored(self) -> MemoryBus:
        """A bus that knows no more than this."""
        bus = MemoryBus(tuple(self._unfinished))
        bus._log.extend(self._log)
        for name, facts in self._unfinished.items():
            bus._groups[name].line.extend(facts)
        return bus


class RemoteClaims:
    """`SeatClaims` over the network. Each process reads the ledger by itself when it fills the store."""

    def __init__(self, network: Network, server: RedisServer) -> None:
        self._network, self._server, self._claims = network, server, server.claims

    def learn(self, event_id: str, plan: Plan) -> None:
        self._claims.learn(event_id, plan)

    def forget(self, event_id: str) -> None:
        """The shared claims stay."""

    def claim_into(self, claim: Any, now_us: int, slot: ResultSlot) -> None:
        asyncio.ensure_future(self.claim(claim, now_us)).add_done_callback(lambda task: move_result(task, slot))

    async def _call(self, what: str, *given: Any) -> Any:
        return await self._call_plain(what, lambda: getattr(self._claims, what)(*given))

    async def claim(self, claim: Any, now_us: int) -> Any:
        return await self._call("claim", claim, now_us)

    async def claim_best(self, claim: Any, now_us: int) -> Any:
        return await self._call("claim_best", claim, now_us)

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        freed: int = await self._call("release", event_id, seats, booking_id)
        return freed

    async def put(self, event_id: str, seats: Sequence[TakenSeat], now_us: int) -> None:
        await self._call("put", event_id, seats, now_us)

    async def states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> Any:
        return await self._call("states", event_id, now_us, seats)

    async def map_states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> Any:
        return await self._call("map_states", event_id, now_us, seats)

    async def lost(self, event_id: str) -> bool:
        lost: bool = await self._call("lost", event_id)
        return lost

    async def lost_among(self, event_ids: Sequence[str]) -> set[str]:
        lost: set[str] = await self._call("lost_among", event_ids)
        return lost

    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        number = await self._call_plain("begin to fill", lambda: self._begin(event_id))
        fresh = {seat.seat: seat async for seat in read()}
        filled: bool = await self._call_plain("end filling", lambda: self._end(event_id, number, fresh))
        return filled

    async def _call_plain(self, what: str, act: Callable[[], Awaitable[Any]]) -> Any:
        async def checked() -> Any:
            self._server.check_memory(what)
            return await act()

        try:
            return await self._network.call(REDIS, what, checked)
        except Lost as error:
            raise Unavailable(str(error), retry_after_s=1.0) from None

    async def _begin(self, event_id: str) -> int:
        event = self._claims._event(event_id)
        event.filled = False
        event.rebuilds += 1
        return event.rebuilds

    async def _end(self, event_id: str, number: int, fresh: dict[int, TakenSeat]) -> bool:
        event = self._claims._event(event_id)
        if event.rebuilds != number:
            return False
        event.taken, event.filled = {event.plan.check_index(seat): one for seat, one in fresh.items()}, True
        return True

    async def aclose(self) -> None:
        """The connection of a process ends with it."""


class RemoteObject:
    """Any shared object whose methods take and return plain values, over the network. `lost` makes the error that the
    port has for a call without an answer."""

    def __init__(
        self,
        network: Network,
        target: str,
        inner: Any,
        lost: Callable[[str], Exception],
        local: Sequence[str] = (),
        check: Callable[[str], None] = lambda what: None,
    ) -> None:
        self._network, self._target, self._inner, self._lost, self._local = network, target, inner, lost, local
        self._check = check  # raises if the target refuses the call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found) or name in self._local:
            return found

        async def call(*given: Any, **named: Any) -> Any:
            async def checked() -> Any:
                self._check(name)
                return await found(*given, **named)

            try:
                return await self._network.call(self._target, name, checked)
            except Lost as error:
                raise self._lost(str(error)) from None

        return call

    async def aclose(self) -> None:
        """The connection of a process ends with it."""


class RemoteLimits:
    """The limiter's store as one process reaches it. It tells the breaker how calls went, as the one of Redis does."""

    tag_parts = None

    def __init__(self, network: Network, server: RedisServer, breaker: Breaker) -> None:
        self._network, self._server, self._breaker = network, server, breaker

    async def adecide(self, request: StoreRequest) -> StoreResult:
        async def decide() -> StoreResult:
            self._server.check_memory("count")
            return await self._server.limits.adecide(request)

        try:
            result: StoreResult = await self._network.call(REDIS, "count", decide)
        except (Lost, Unavailable) as error:
            self._breaker.failed()
            raise StoreDown(str(error)) from None
        self._breaker.succeeded()
        return result

    def decide(self, request: StoreRequest) -> StoreResult:
        """Nobody blocks here."""
        raise NotImplementedError

    def close(self) -> None:
        """The connection of a process ends with it."""

    async def aclose(self) -> None:
        """The connection of a process ends with it."""


def shared_limiter(network: Network, server: RedisServer, clock: Clock) -> Limiter:
    """The limit that all servers share, in one of them. It refuses while the store is away."""
    breaker, local = Breaker(clock, jitter=lambda: 0.5), MemoryStore(LIMIT_SLOTS, clock)
    remote = RemoteLimits(network, server, breaker)
    stats = Stats([slot.rule.name for slot in LIMIT_SLOTS])
    store = SharedStore(remote, local, LIMIT_SLOTS, clock, stats, breaker, "closed")
    return Limiter(LIMIT_SLOTS[0].rule, store=store, clock=clock, stats=stats)


def remote_rooms(network: Network, server: RedisServer) -> Any:
    """The waiting room's store as one process reaches it."""

    def lost(why: str) -> Unavailable:
        return Unavailable(why, retry_after_s=1.0)

    return RemoteObject(network, REDIS, server.rooms, lost, check=server.check_memory)


def remote_provider(network: Network, provider: SimulatedProvider) -> Any:
    """The payment provider as one process reaches it."""
    return RemoteObject(network, PROVIDER, provider, ProviderUnknown, local=("notice",))


class RemoteBus:
    """The bus as one process reaches it. What a crashed process had in hand comes again; facts may come twice, much
    later once more, and in another order than they were published."""

    def __init__(self, network: Network, server: RedisServer, loop: SeededLoop, seed: str) -> None:
        self._network, self._server, self._loop = network, server, loop
        self._dice = random.Random(seed)
        self.readers: list[Any] = []

    async def publish(self, facts: Sequence[BusFact]) -> None:
        again = [one for one in facts if self._dice.random() < self._network.rate]
        for one in facts:
            if self._dice.random() < self._network.rate:
                self._network.fates["a fact came late once more"] += 1
                late_s = self._dice.choice((1, 8, 40))
                self._loop.call_later(late_s, self._publish_late, one, context=self._network.context_of(REDIS))

        async def publish() -> None:
            self._server.check_memory("publish")
            await self._server.bus.publish([*facts, *again])

        try:
            await self._network.call(REDIS, "publish", publish)
        except Lost as error:
            raise Unavailable(str(error), retry_after_s=1.0) from None

    def _publish_late(self, fact: BusFact) -> None:
        result_at_once(self._server.bus.publish([fact]))

    async def reader(self, group: str) -> Any:
        server = self._server

        async def open_reader() -> RemoteReader:
            is_new_group = group not in server.bus._groups
            inner = await server.bus.reader(group)
            return RemoteReader(self._network, server, inner, self._dice, is_new_group=is_new_group)

        try:
            reader: RemoteReader = await self._network.call(REDIS, "reader", open_reader)
        except Lost as error:
            raise Unavailable(str(error), retry_after_s=1.0) from None
        self.readers.append(reader.inner)
        server.readers.append(reader.inner)
        return reader

    async def measure_lag(self, groups: Sequence[str]) -> dict[tuple[str, str], int]:
        """Nobody measures it here."""
        return {}

    async def aclose(self) -> None:
        """The connection of a process ends with it."""


class RemoteReader:
    """A reader of the bus over the network. Its connection ends with the Redis that it was made at."""

    def __init__(
        self, network: Network, server: RedisServer, inner: MemoryReader, dice: random.Random, *, is_new_group: bool
    ) -> None:
        self._network, self._server, self._bus, self._dice = network, server, server.bus, dice
        self.inner, self.is_new_group = inner, is_new_group

    def _check_connection(self) -> None:
        if self._server.bus is not self._bus:
            raise Unavailable("the connection broke: Redis started again", retry_after_s=1.0)

    async def read(self, limit: int, wait_s: float) -> list[BusFact]:
        reader = PROCESS.get()

        async def read() -> list[BusFact]:
            self._check_connection()
            found: list[BusFact] = await self.inner.read(limit, 0.0)
            if self._network.is_dead(reader):
                await self.inner.aclose()  # it died while it asked: what it was given goes to another
            return found

        try:
            found: list[BusFact] = await self._network.call(REDIS, "read", read)
        except Lost as error:
            await self.inner.aclose()  # what was read and never arrived is delivered again
            raise Unavailable(str(error), retry_after_s=1.0) from None
        if len(found) > 1 and self._dice.random() < self._network.rate:
            self._network.fates["facts came in another order"] += 1
            self._dice.shuffle(found)
        return found

    async def done(self, facts: Sequence[BusFact]) -> None:
        async def done() -> None:
            self._check_connection()
            await self.inner.done(facts)

        try:
            await self._network.call(REDIS, "done", done)
        except Lost as error:
            await self.inner.aclose()
            raise Unavailable(str(error), retry_after_s=1.0) from None

    def stop_waiting(self) -> None:
        """Nobody waits: reads answer at once."""

    async def aclose(self) -> None:
        await self.inner.aclose()
        if self.inner in self._server.readers:
            self._server.readers.remove(self.inner)
