"""One process of a storm: its share of the crowd on one event loop. `storm.run_storm` starts several."""

import asyncio
import os
import signal
from multiprocessing.connection import Connection

import numpy as np

from frontrow.rehearsal.fan_calls import FanCalls, FanRequest
from frontrow.rehearsal.http_client import LOST, ConnectionPool, FanConnection, Reply
from frontrow.rehearsal.sale_plan import SalePlan
from frontrow.rehearsal.simulation import gather_crowd
from frontrow.rehearsal.storm_fans import (
    WATCH_S,
    FanDraw,
    RequestPacer,
    RoomWatch,
    StormClock,
    StormFan,
    StormGround,
)
from frontrow.rehearsal.storm_plan import StormPlan
from frontrow.rehearsal.storm_record import StormRecord, pack_record
from frontrow.rehearsal.visit_draws import draw_payments, draw_reactions, draw_visits

LISTEN_S = 0.2
WATCHER_ADDRESS = "198.19.255.254"
# What the processes say to each other. News is only sent when asked for: a full pipe would hold up the fans.
READY, START, ASK, STOP, NEWS, END = "ready", "start", "ask", "stop", "news", "end"


def run_storm_process(plan: StormPlan, number: int, pipe: Connection) -> None:
    """Say that it is ready, wait for the start, give news when asked, and at the end the whole record."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which then stops the others
    draws = draw_fans(plan.sale, number, plan.processes)
    try:
        pipe.send((READY, number))
        word, zero_s = pipe.recv()
        if word == START:
            record = asyncio.run(_StormShare(plan, draws, pipe, zero_s).run())
            pipe.send((END, pack_record(record)))
    except (EOFError, BrokenPipeError):
        return  # the first process has gone


def draw_fans(sale: SalePlan, number: int, processes: int) -> list[FanDraw]:
    """The fans of this process: every n-th of the crowd, in order of arrival. The same seed is the same crowd."""
    rng = np.random.default_rng(sale.seed)
    crowd = gather_crowd(sale, rng)
    reactions_s = draw_reactions(sale, rng, crowd.is_bot)
    visits, payments = draw_visits(sale, rng, crowd.is_bot), draw_payments(sale, rng, crowd.is_bot)
    polls_s = sale.poll_s * rng.uniform(0.85, 1.15, crowd.is_bot.size)
    return [
        FanDraw(
            number=fan + 1,
            arrives_s=float(crowd.arrives_s[fan]),
            leaves_line_s=float(crowd.leaves_line_s[fan]),
            reaction_s=float(reactions_s[fan]),
            leaves=bool(visits.leaves[fan]),
            browse_s=float(visits.browse_s[fan]),
            seats=int(visits.groups[fan]),
            pay_s=float(payments.pay_s[fan]),
            abandons=bool(payments.abandons[fan]),
            fails=bool(payments.fails[fan]),
            poll_s=float(polls_s[fan]),
        )
        for fan in range(number, crowd.is_bot.size, processes)
    ]


class _StormShare:
    """The fans of one process and what they share."""

    def __init__(self, plan: StormPlan, draws: list[FanDraw], pipe: Connection, zero_s: float) -> None:
        self._plan, self._draws, self._pipe = plan, draws, pipe
        self._clock, self._record = StormClock(zero_s), StormRecord()
        self._watch = RoomWatch(self._clock)
        self._fans: set[asyncio.Task[None]] = set()
        self._parent, self._stopped = os.getppid(), False

    async def run(self) -> StormRecord:
        """Until every journey has ended, the time is over, or the first process says stop."""
        plan = self._plan
        pool = ConnectionPool(plan.target, max(1, plan.connections // plan.processes))
        ground = StormGround(
            plan.event_id,
            self._clock,
            pool,
            RequestPacer(plan.requests_per_s / plan.processes),
            self._watch,
            self._record,
            plan.length_s,
            plan.pays,
        )
        watching = asyncio.create_task(self._watch_room())
        coming = asyncio.create_task(self._let_fans_come(ground))
        try:
            while not self._is_over() and not (coming.done() and not self._fans):
                await asyncio.sleep(LISTEN_S)
                self._listen()
        finally:
            watching.cancel()
            coming.cancel()
            for fan in self._fans:
                fan.cancel()
            await asyncio.gather(watching, coming, *self._fans, return_exceptions=True)
            await pool.aclose()
        return self._record

    def _listen(self) -> None:
        """Do what the first process says."""
        while self._pipe.poll():
            word, _ = self._pipe.recv()
            if word == ASK:
                self._pipe.send((NEWS, pack_record(self._record, brief=True)))
            self._stopped = self._stopped or word == STOP

    def _is_over(self) -> bool:
        stopped = self._stopped or os.getppid() != self._parent
        return stopped or self._clock.now_s() >= self._plan.length_s

    async def _let_fans_come(self, ground: StormGround) -> None:
        for draw in self._draws:
            if draw.arrives_s >= self._plan.length_s:
                return
            await self._clock.sleep_until(draw.arrives_s)
            task = asyncio.create_task(StormFan(draw, ground).run())
            self._fans.add(task)
            task.add_done_callback(self._fans.discard)

    async def _watch_room(self) -> None:
        """Read the window five times per second, whatever the fans do. A read that fails is tried again."""
        connection = FanConnection(self._plan.target, WATCHER_ADDRESS)

        async def send(request: FanRequest) -> Reply:
            return await connection.send(request.method, request.path, **request.headers)

        calls = FanCalls(self._plan.event_id, send)
        try:
            while True:  # ends with the storm: it cancels this
                try:
                    reply = await calls.read_window()
                    if reply.status == 200:
                        self._watch.read(reply.json())
                except (OSError, TimeoutError, ValueError, *LOST):
                    pass
                await asyncio.sleep(WATCH_S)
        finally:
            await connection.aclose()
