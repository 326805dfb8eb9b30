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

from frontrow.rehearsal.http_client import FanConnection
from frontrow.rehearsal.seat_counts import SeatCounts, count_seats
from frontrow.rehearsal.server_consent import FAN_ADDRESS, ServerConsent
from frontrow.rehearsal.storm_plan import StormPlan
from frontrow.rehearsal.storm_process import ASK, END, NEWS, READY, START, STOP, run_storm_process
from frontrow.rehearsal.storm_record import FanOutcome, StormRecord, unpack_record

START_WITHIN_S = 60.0
END_WITHIN_S = 20.0  # after its time, a process that has not ended is ended
LEAD_S = 0.3
LOOK_S = 0.25
SHOW_S = 1.0
SEAT_LOOKS = 20


@dataclass(frozen=True, slots=True)
class StormCheck:
    """Something that must hold at the end, and whether it did. None: it could not be checked, and `detail` says why."""

    what: str
    holds: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class StormResult:
    plan: StormPlan
    consent: ServerConsent
    record: StormRecord
    took_s: float
    after: SeatCounts | None  # the seats on the map at the end, if the server said
    checks: tuple[StormCheck, ...]

    @property
    def fine(self) -> bool:
        return all(check.holds is not False for check in self.checks)


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
        after = asyncio.run(_read_seats(self.plan, self._consent.sold + record.seats_bought))
        checks = (_check_processes(self.plan, lost), *check_record(record, self._consent, after))
        return StormResult(self.plan, self._consent, record, took_s, after, checks)

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


def check_record(record: StormRecord, consent: ServerConsent, after: SeatCounts | None) -> list[StormCheck]:
    """What must hold after a storm, whatever the server did. `after` are the seats on the map at its end."""
    outcomes, wrong = sum(record.outcomes.values()), record.outcomes[FanOutcome.FAILED.value]
    came = record.arrived > 0
    return [
        _check_seats(record),
        _check_tickets(record),
        _check_map(record, consent.sold, after),
        StormCheck(
            "Every fan's journey has one end",
            outcomes == record.arrived if came else None,
            f"{record.arrived:,} fans came, {outcomes:,} ends",
        ),
        StormCheck(
            "No fan got a wrong answer",
            not wrong if came else None,
            f"{wrong:,} did" + "".join(f"; {odd}" for odd in record.odd[:3]),
        ),
    ]


def _check_seats(record: StormRecord) -> StormCheck:
    tickets, seats = len(record.tickets), len(set(record.tickets.values()))
    what = "No seat was sold twice"
    if not tickets and not record.tickets_twice:
        return StormCheck(what, None, "no fan got a ticket")
    told = f"{tickets:,} tickets for {seats:,} different seats, {record.tickets_twice:,} given out twice"
    return StormCheck(what, seats == tickets and not record.tickets_twice, told)


def _check_tickets(record: StormRecord) -> StormCheck:
    """Every paid seat has a ticket. Fans whom the end or a refusal cut off between the two leave it open."""
    what, tickets, missing = (
        "Every seat that was paid has its ticket",
        len(record.tickets),
        record.seats_awaiting_tickets,
    )
    told = f"{record.seats_bought:,} seats bought in {record.bookings:,} bookings, {tickets:,} tickets"
    if not record.seats_bought:
        return StormCheck(what, None, "nobody bought")
    if tickets + missing != record.seats_bought:
        return StormCheck(what, False, told)
    cut_off = record.outcomes[FanOutcome.CUT_OFF.value] + record.outcomes[FanOutcome.TURNED_AWAY.value]
    if missing and cut_off:
        return StormCheck(what, None, f"{told}; the fans of {missing:,} seats could not fetch theirs before the end")
    return StormCheck(what, not missing, told)


def _check_map(record: StormRecord, before: int, after: SeatCounts | None) -> StormCheck:
    """The seats that fans bought are the seats that were sold on the map meanwhile."""
    what = "The seats that fans bought are sold on the map, and no others"
    if before < 0 or after is None:
        return StormCheck(what, None, "the server did not show its map")
    sold, bought, unsure = after.sold - before, record.seats_bought, record.seats_unsure
    if not sold and not bought:
        return StormCheck(what, None, "nobody bought")
    told = f"{sold:,} sold on the map, {bought:,} bought by fans"
    if unsure:
        told += f", {unsure:,} in payments whose end no fan saw"
    if sold > bought + unsure:
        told += "; did somebody else buy?"
    return StormCheck(what, bought <= sold <= bought + unsure, told)


def _check_processes(plan: StormPlan, lost: int) -> StormCheck:
    return StormCheck("Every process of the storm ended well", not lost, f"{plan.processes - lost} of {plan.processes}")


def _join(records: list[StormRecord]) -> StormRecord:
    total = StormRecord()
    for record in records:
        total.add(record)
    return total


async def _read_seats(plan: StormPlan, sold: int) -> SeatCounts | None:
    """The seats on the map, once as many are sold as fans bought, or as it is at last; None if there is no map."""
    found, connection = None, FanConnection(plan.target, FAN_ADDRESS)
    try:
        for _ in range(SEAT_LOOKS):
            reply = await connection.send("GET", f"/v1/events/{plan.event_id}/seats.bin")
            found = count_seats(reply.body) if reply.status == 200 else None
            if found is not None and found.sold >= sold:
                break
            await asyncio.sleep(max(LOOK_S, reply.retry_after_s))  # the map may be a moment behind
    except (OSError, TimeoutError, ValueError, EOFError):
        return None
    finally:
        await connection.aclose()
    return found
