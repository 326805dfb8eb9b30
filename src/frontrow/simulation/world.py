"""A whole platform in one seed: two servers and two workers over one ledger, one Redis, one provider and one mailbox.

`play` lets fans, gates and an organiser do what they do while the network loses calls, stores go away or forget, clocks
jump and processes crash. Then everything is healed, and what goes on by itself comes to its end. `laws` are checked
after every commit and at the end. Three streams of the seed are independent: schedule, faults and workload.
"""

import asyncio
import contextlib
import dataclasses
import functools
import importlib
import inspect
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.errors import FrontrowError
from frontrow.simulation.faults import Faults
from frontrow.simulation.laws import Laws, everything_has_ended
from frontrow.simulation.ledger_server import ReplicaServer, SharedLedger
from frontrow.simulation.loop import BEGIN_US, SeededLoop, Stuck, Trace, run_seeded
from frontrow.simulation.network import Lost, Network, RedisServer
from frontrow.simulation.people import PlayedFan, PlayedGate, PlayedOrganiser
from frontrow.simulation.processes import GROUPS, MachineClock, MailBox, PlayedServer, Process, Shared, Worker
from frontrow.simulation.scene import ADA, EVENT, Scene
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit


@dataclasses.dataclass
class Result:
    """What became of a seed."""

    seed: int
    trace: str
    reached: Counter[str]
    faults: Counter[str]
    broken: str = ""
    steps: int = 0
    cpu_s: float = 0.0


class World:
    """Everything of one seed."""

    def __init__(
        self, loop: SeededLoop, seed: int, folder: Path, scene: Scene, *, rate: float, bug: str = "", only: str = ""
    ) -> None:
        self.loop, self.seed, self.scene = loop, seed, scene
        self.planted = contextlib.ExitStack()
        self.workload = random.Random(f"workload {seed}")
        self.network = Network(loop, seed, rate)
        self.path = folder / "ledger.db"
        self.path.write_bytes(empty_ledger())
        store = SqliteStore(self.path)
        self.ledger = SharedLedger(store, loop)
        self.replica = ReplicaServer(self.ledger, self.path)
        self.redis = RedisServer(self.now_us, GROUPS)
        self.box = MailBox()
        self.provider = SimulatedProvider(self.now_us)
        self.audit = open_sqlite_audit(":memory:")
        self.shared = Shared(
            loop, self.network, self.ledger, self.redis, self.audit, self.provider, self.box, self.replica, scene
        )
        if random.Random(f"versions {seed}").random() < 0.5:
            self.shared.old.add("server2")
        self.processes: dict[str, Process] = {}
        self.generations: Counter[str] = Counter()
        self.worker_crashes = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        self.reached: Counter[str] = Counter()
        self.plan, self.is_over = scene.plan(), False
        self.faults = Faults(self)
        self.people = [PlayedFan(self, f"fan{n}") for n in range(scene.fans)]
        self.laws = Laws(self, only)
        self.ledger.after_commit = self.laws.after_commit
        self.shared.saw_replica = self.laws.saw_replica
        if bug:
            plant_of(bug)(self)

    def now_us(self) -> int:
        """The true time."""
        return BEGIN_US + self.loop.now_us

    def server(self) -> PlayedServer | None:
        """Some server that answers."""
        ready = [one for one in self.processes.values() if isinstance(one, PlayedServer) and one.is_ready]
        return self.workload.choice(ready) if ready else None

    # processes

    def start(self, name: str) -> None:
        """Start a process. It tries until its stores answer, then does its jobs."""
        self.generations[name] += 1
        process_id = f"{name}.{self.generations[name]}"
        dice = self.faults.dice
        skew_us = dice.choice([0, 0, -300_000_000, 7_000_000, 3_600_000_000])
        clock = MachineClock(self.loop, skew_us, dice.choice([0, 0, 200, -200]))
        self.spawn(process_id, self._live(name, process_id, clock))

    def spawn(self, process_id: str, work: Any) -> asyncio.Task[Any]:
        self.network.begun.append(work)
        task: asyncio.Task[Any] = self.loop.create_task(work, context=self.network.context_of(process_id))
        self.tasks.add(task)  # also those of crashed processes: they must not be finalized before the end
        return task

    async def _live(self, name: str, process_id: str, clock: MachineClock) -> None:
        make = PlayedServer if name.startswith("server") else Worker
        process = make(self.shared, process_id, clock)
        self.processes[name] = process
        while not process.is_ready:  # bounded by the seed's end
            try:
                await process.start()
                if isinstance(process, PlayedServer):
                    await process.room.control.create(EVENT, self.scene.room)
            except (FrontrowError, TimeoutError):
                process.is_ready = False
                await asyncio.sleep(2.0)
        pause_s = (0.7, 1.5, 3.0) if isinstance(process, PlayedServer) else (0.5, 1.5, 4.0)
        dice = random.Random(f"jobs {self.seed} {process_id}")
        while not self.is_over:
            await asyncio.sleep(dice.choice(pause_s))
            await self.turn(process, dice.choice(process.jobs(EVENT)))

    async def turn(self, process: Process, job: Callable[[], Awaitable[Any]]) -> bool:
        """One turn of a job, whatever comes of it. An error that is not ours is a defect."""
        name = getattr(job, "__qualname__", "job").rpartition(".")[2]
        try:
            await job()
            return True
        except FrontrowError as error:
            self.loop.trace.add(f"{process.id} {name} {error.code}")
        except Exception as error:
            self.laws.broke("jobs_never_fail", f"{process.id} {name}: {error!r}", error)
        return False

    def crash(self, name: str) -> None:
        """The process is gone, wherever it was."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        self.faults.note("crash")
        self.worker_crashes += isinstance(process, Worker)
        self.loop.crash(process.id)
        for reader in process.bus.readers:  # what it had read is delivered to another
            reader._group.in_progress -= len(reader._in_progress)
            reader._group.line.extendleft(sorted(reader._in_progress.values(), key=lambda fact: -fact.number))
            reader._in_progress.clear()
            if reader in self.redis.readers:
                self.redis.readers.remove(reader)

    # one seed

    async def begin(self) -> None:
        body = plan_bytes(self.plan)
        clean = SqlLedger(self.ledger.store)
        now_us = self.now_us()
        await clean.catalogue.put_plan(digest(body), self.plan, body.decode(), now_us)
        await clean.catalogue.put_venue(Venue("ven_1", "Hall", digest(body), "Vienna", "AT", "Europe/Vienna"), now_us)
        limited = self.seed % 5 != 3  # without a limit, a server pays a hold that it has placed without reading it
        await clean.catalogue.put_event(self.scene.event(digest(body), limited=limited), now_us)
        for fan in self.people:
            phone = "+4366012345"
            await clean.messages.put_contact(Contact(fan.name, phone=phone, channels=("sms",)), now_us)
            await clean.messages.put_phone_code(fan.name, phone, "digest of the code", now_us + 60_000_000, now_us)
            await clean.messages.check_phone_code(fan.name, lambda _: "digest of the code", now_us)
        self.clean = clean
        for name in ("server1", "server2", "worker1", "worker2"):
            self.start(name)

    async def play(self) -> None:
        """The history, then healing. Laws are checked all along."""
        await self.begin()
        actors = [self.spawn("people", fan.live()) for fan in self.people]
        actors.append(self.spawn("people", PlayedGate(self).live()))
        actors.append(self.spawn("people", PlayedOrganiser(self).live()))
        actors.append(self.spawn("bank", self.faults.bank()))
        actors.append(self.spawn("bank", self.faults.dispute()))
        actors.append(self.spawn("faults", self.faults.live()))
        actors.append(self.spawn("replica", self.faults.replicate()))
        await asyncio.sleep(self.scene.lasts_s)
        self.is_over = True
        for actor in actors:
            actor.cancel()
        for actor in actors:  # one by one: `gather` makes other callbacks on other Pythons
            with contextlib.suppress(asyncio.CancelledError):
                await actor
        await self._heal()
        await self.laws.at_rest()

    async def _heal(self) -> None:
        """Nothing fails any more. Processes restart, the bank answers, time passes, jobs do their turns."""
        self.network.rate = 0.0
        self.network.away.clear()
        self.network.cut.clear()
        self.faults.heal()
        for name in list(self.processes):
            self.crash(name)
        self.is_over = True
        for name in ("server1", "worker1"):
            self.start(name)
        for _ in range(600):
            if len(self.processes) == 2 and all(one.is_ready for one in self.processes.values()):
                break
            await asyncio.sleep(0.5)
        server, worker = self.processes["server1"], self.processes["worker1"]
        assert isinstance(server, PlayedServer)
        assert isinstance(worker, Worker)
        quiet = 0
        for number in range(120):
            await asyncio.sleep(20 if number < 8 else 200)
            self.faults.settle_bank()
            await self.faults.tell_disputes()
            for job in dict.fromkeys([*server.jobs(EVENT), *worker.jobs(EVENT)]):
                await self.turn(worker, job)
            for _ in range(20):
                if not worker.deliverer._queues:
                    break
                await asyncio.sleep(1)
            await self.turn(worker, lambda: self._retry_refunds(server))
            quiet = 0 if everything_has_ended(self.laws) else quiet + 1
            if quiet == 3:
                break

    async def _retry_refunds(self, server: PlayedServer) -> None:
        """The organiser tries failed refunds again."""
        rows = self.laws.rows("SELECT booking_id, id FROM refunds WHERE refund_state = 'failed'")
        for booking_id, refund_id in rows:
            await server.office.refunds.retry(booking_id, refund_id, self._note)

    def _note(self, refund: Refund) -> Change:
        return Change(ADA, "retry_refund", EVENT, self.now_us(), {"refund": refund.id})

    def close(self) -> None:
        """Close the files, and what crashed processes never began."""
        for work in self.network.begun:
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
        self.laws.close()
        self.replica.close()
        self.ledger.store._close()
        audit: Any = self.audit
        audit._database._connection.close()
        audit._database._thread.shutdown()

    # what people use

    async def ask(self, who: str, what: str, act: Callable[[PlayedServer], Awaitable[Any]]) -> Any:
        """The answer of some server to a request, or None: refused, lost, or too slow."""
        server = self.server()
        if server is None:
            self.loop.trace.add(f"{who} {what} no server")
            return None
        answer = None
        try:
            async with asyncio.timeout(15):
                answer = await self.network.call(server.id, what, lambda: act(server))
            outcome = "ok"
        except FrontrowError as error:
            outcome = error.code
        except (Lost, TimeoutError):
            outcome = "no answer"
        except Exception as error:
            outcome = type(error).__name__
            self.laws.broke("requests_never_fail", f"{who} {what} at {server.id}: {error!r}", error)
        self.reached[f"{what}: {outcome}"] += 1
        self.loop.trace.add(f"{self.loop.now_us} {who} {what} {outcome}")
        return answer


@functools.cache
def empty_ledger() -> bytes:
    """A migrated SQLite file, made once per process: migrating costs more than most histories."""
    with tempfile.TemporaryDirectory() as folder:
        migrate(f"sqlite:///{folder}/empty.db")
        return (Path(folder) / "empty.db").read_bytes()


def plant_of(bug: str) -> "Callable[[World], None]":
    """The function `module:name` that plants a bug into a world: the tests' proof that a law can be broken."""
    module, _, name = bug.partition(":")
    plant: Callable[[World], None] = importlib.import_module(module).CANARIES[name]
    return plant


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder in memory, if the machine has one."""
    home = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = tempfile.mkdtemp(dir=home)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def run_seed(
    seed: int, scene: Scene | None = None, *, bug: str = "", only: str = "", trace: Trace | None = None
) -> Result:
    """Play one seed. `bug` plants a bug (`plant_of`), and `only` checks one law. What broke is in the result."""
    trace, began_s = trace or Trace(), time.process_time()
    scene = scene or Scene()
    rate = scene.fault_rate
    if rate is None:
        rate = random.Random(f"rate {seed}").choice([0.0, 0.02, 0.05, 0.05, 0.1])
    empty_ledger()
    with _folder() as folder:
        worlds: list[World] = []

        async def main(loop: SeededLoop) -> None:
            world = World(loop, seed, folder, scene, rate=rate, bug=bug, only=only)
            worlds.append(world)
            await world.play()

        broken = ""
        try:
            run_seeded(seed, main, trace)
        except (AssertionError, RuntimeError) as error:  # a broken law stops the loop
            broken = worlds[0].laws.first_broken if worlds else ""
            if not broken and isinstance(error, Stuck) and worlds:
                broken = f"it never ends, at {worlds[0].loop.time():.3f} s: {error}"
            if not broken:
                raise
        finally:
            for one in worlds:
                one.planted.close()
        world = worlds[0]
        world.close()
        faults = world.faults.injected + Counter(
            {f: n for f, n in world.network.fates.items() if not f.endswith("well")}
        )
        cpu_s = time.process_time() - began_s
        return Result(seed, trace.digest(), world.reached, faults, broken, world.loop.steps, cpu_s)
