"""Runs a storm: several processes load one server that has consented, and what they saw is joined and checked.

It ends by itself: when every journey has ended, or when its time is over. `stop` ends it sooner; what was seen until
then is reported all the same.
"""

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from frontrow.rehearsal.http_client import FanConnection
from frontrow.rehearsal.server_consent import FAN_ADDRESS, ServerConsent
from frontrow.rehearsal.storm_plan import StormPlan
from frontrow.rehearsal.storm_process import ASK, END, NEWS, READY, START, STOP, run_storm_process
from frontrow.rehearsal.storm_record import FanOutcome, StormRecord, unpack_record

START_WITHIN_S = 60.0
END_WITHIN_S = 20.0  # after its time, a process that has not ended is ended
LEAD_S = 0.3
LOOK_S = 0.25
SHOW_S = 1.0
FREE_LOOKS = 20


@dataclass(frozen=True, slots=True)
class StormCheck:
    """Something that must hold at the end, and whether it did."""

    what: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class StormResult:
    plan: StormPlan
    consent: ServerConsent
    record: StormRecord
    took_s: float
    free_after: int
    checks: tuple[StormCheck, ...]

    @property
    def fine(self) -> bool:
        return all(check.holds for check in self.checks)


class Storm:
    """One storm. `run` blocks until its end; `stop` may be called from a signal handler."""

    def __init__(self, plan: StormPlan, consent: ServerConsent) -> None:
        self.plan, self._consent = plan, consent
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    def run(self, show: Callable[[StormRecord, float], None] | None = None) -> StormResult:
        """Run it. `show` is given what was seen so far, and the seconds since the beginning."""
        context = multiprocessing.get_context("spawn")
        pipes: list[Connection] = []
        processes = []
        for number in range(self.plan.processes):
            mine, theirs = context.Pipe()
            process = context.Process(target=run_storm_process, args=(self.plan, number, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes.append(mine)
            processes.append(process)
        try:
            self._wait_until_ready(pipes)
            zero_s = time.monotonic() + LEAD_S + max(0.0, self.plan.sale.before_s)
            for pipe in pipes:
                pipe.send((START, zero_s))
            records, lost = self._listen(pipes, zero_s, show)
            took_s = time.monotonic() - zero_s
        finally:
            for pipe in pipes:
                pipe.close()
            for process in processes:
                process.join(END_WITHIN_S / 4)
                if process.is_alive():
                    process.terminate()
                    process.join(END_WITHIN_S / 4)
        record = _join(records)
        free_after = asyncio.run(_read_free(self.plan, self._consent.seats - record.seats_bought))
        checks = (_check_processes(self.plan, lost), *check_record(record, self._consent, free_after))
        return StormResult(self.plan, self._consent, record, took_s, free_after, checks)

    def _wait_until_ready(self, pipes: list[Connection]) -> None:
        until_s = time.monotonic() + START_WITHIN_S
        for pipe in pipes:
            if not pipe.poll(max(0.0, until_s - time.monotonic())) or pipe.recv()[0] != READY:
                raise TimeoutError("a process of the storm did not start in time")

    def _listen(
        self, pipes: list[Connection], zero_s: float, show: Callable[[StormRecord, float], None] | None
    ) -> tuple[list[StormRecord], int]:
        """What each process has seen, and how many ended without saying so."""
        latest: dict[Connection, StormRecord] = {}
        open_pipes, asked, lost, told, next_s = set(pipes), set[Connection](), 0, False, 0.0
        last_s = zero_s + self.plan.length_s + END_WITHIN_S
        while open_pipes and time.monotonic() < last_s:
            if self._stopping and not told:
                told = True
                _say(open_pipes, STOP)
            if time.monotonic() >= next_s:
                next_s = time.monotonic() + SHOW_S
                _say(open_pipes - asked, ASK)
                asked |= open_pipes
                if show is not None:
                    show(_join(list(latest.values())), time.monotonic() - zero_s)
            heard = wait(list(open_pipes), timeout=LOOK_S)
            for pipe in [pipe for pipe in pipes if pipe in heard]:
                try:
                    word, packed = pipe.recv()
                except (EOFError, ConnectionError):
                    open_pipes.discard(pipe)
                    lost += 1
                    continue
                latest[pipe] = unpack_record(packed)
                if word == END:
                    open_pipes.discard(pipe)
                else:
                    assert word == NEWS
                    asked.discard(pipe)
        return list(latest.values()), lost + len(open_pipes)


def _say(pipes: set[Connection], word: str) -> None:
    for pipe in pipes:
        with contextlib.suppress(ConnectionError):  # it has ended: that is noticed where it is listened to
            pipe.send((word, 0.0))


def check_record(record: StormRecord, consent: ServerConsent, free_after: int) -> list[StormCheck]:
    """What must hold after a storm, whatever the server did."""
    tickets, seats = len(record.tickets), len(set(record.tickets.values()))
    outcomes = sum(record.outcomes.values())
    wrong, cut_off = record.outcomes[FanOutcome.FAILED.value], record.outcomes[FanOutcome.CUT_OFF.value]
    return [
        StormCheck(
            "No seat was sold twice",
            seats == tickets and not record.tickets_twice,
            f"{tickets:,} tickets for {seats:,} different seats, {record.tickets_twice:,} given out twice",
        ),
        StormCheck(
            "Every seat that was paid has its ticket",
            tickets == record.seats_bought - record.seats_awaiting_tickets
            and (not record.seats_awaiting_tickets or cut_off > 0),
            f"{record.seats_bought:,} seats bought in {record.bookings:,} bookings, {tickets:,} tickets",
        ),
        StormCheck(
            "The seats sold are gone from the sale",
            0 <= free_after <= consent.seats - record.seats_bought,
            f"{consent.free:,} of {consent.seats:,} seats were free before, {free_after:,} after; "
            f"{record.seats_bought:,} were bought, {record.seats_left_held:,} left in unpaid holds",
        ),
        StormCheck(
            "Every fan's journey has one end",
            outcomes == record.arrived,
            f"{record.arrived:,} fans came, {outcomes:,} ends",
        ),
        StormCheck(
            "No fan got a wrong answer", not wrong, f"{wrong:,} did" + "".join(f"; {odd}" for odd in record.odd[:3])
        ),
    ]


def _check_processes(plan: StormPlan, lost: int) -> StormCheck:
    return StormCheck("Every process of the storm ended well", not lost, f"{plan.processes - lost} of {plan.processes}")


def _join(records: list[StormRecord]) -> StormRecord:
    total = StormRecord()
    for record in records:
        total.add(record)
    return total


async def _read_free(plan: StormPlan, at_most: int) -> int:
    """How many seats are free now; -1 if the server does not say. Caches may be a moment behind."""
    free, connection = -1, FanConnection(plan.target, FAN_ADDRESS)
    try:
        for _ in range(FREE_LOOKS):
            reply = await connection.send("GET", f"/v1/events/{plan.event_id}")
            shown: dict[str, Any] = reply.json() if reply.status == 200 else {}
            free = int(shown.get("free", -1))
            if 0 <= free <= at_most:
                break
            await asyncio.sleep(max(LOOK_S, reply.retry_after_s))
    except (OSError, TimeoutError, ValueError, EOFError):
        return -1
    finally:
        await connection.aclose()
    return free
