"""W4, W6, F5: real processes and Redis: leaders killed, frozen and with wrong clocks; arrival order over four."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from frontrow.rehearsal.servers import Valkey
from frontrow.waitingroom.keys import RoomKeys
from tests.waitingroom.faults.worker import CONFIG, EVENT, INTERVAL_US, LEASE_TTL_US

ROOT = Path(__file__).parents[3]
MOST_GAP_S = (LEASE_TTL_US + INTERVAL_US) / 1e6


class Worker:
    """One room process; its lines are read without ever blocking for good."""

    def __init__(self, **order: Any) -> None:
        command = [sys.executable, "-m", "tests.waitingroom.faults.worker", json.dumps(order)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.slides: list[float] = []
        self.buffer = b""

    def line(self, seconds: float = 30.0) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            assert self.process.stdout is not None
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the process said nothing in time"
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            assert chunk, "the process ended"
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return dict(json.loads(line))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    started: list[Worker] = []
    yield started
    for worker in started:
        worker.close()


@pytest.fixture
def keys_folder(tmp_path: Path, room_keys: RoomKeys) -> str:
    folder = tmp_path / "keys"
    folder.mkdir(mode=0o700)
    room_keys.save(folder)
    return str(folder)


class Watch:
    """Reads the window straight from Redis and keeps the history of its slides."""

    def __init__(self, url: str) -> None:
        self.redis = redis.Redis.from_url(url)
        self.key = f"{{room:{EVENT}}}"

    def fields(self) -> dict[str, str]:
        found: dict[bytes, bytes] = self.redis.hgetall(self.key)  # type: ignore[assignment]
        return {name.decode(): value.decode(errors="replace") for name, value in found.items()}

    def people(self, count: int) -> None:
        self.redis.hincrby(self.key, "i0", count)

    def hi(self) -> int:
        return int(self.fields().get("h0", 0))

    def leader(self) -> str:
        return self.fields().get("leader", "")

    def until_hi(self, hi: int, seconds: float = 20.0) -> float:
        """When the window got beyond `hi`; how long that took."""
        start = time.monotonic()
        while self.hi() <= hi:
            assert time.monotonic() - start < seconds, "nobody slides any more"
            time.sleep(0.005)
        return time.monotonic() - start


def slides_fit_the_intervals(watch: Watch, opened_us: int) -> None:
    """Never two slides for an interval: the window is at most one size for each interval since the start."""
    seconds, micros = watch.redis.time()  # type: ignore[misc]
    now_us = seconds * 1_000_000 + micros
    due = (now_us - opened_us) // INTERVAL_US + 2  # one is due at the start, one may fall between the two readings
    assert watch.hi() <= due * CONFIG.window_size


@pytest.mark.parametrize("fault", ["kill", "freeze", "skew"])
def test_w4_leaders_killed_frozen_or_with_wrong_clocks(
    fault: str, own_valkey: Valkey, workers: list[Worker], keys_folder: str
) -> None:
    """No slide is lost or made twice, and the gap without a leader is bounded by TTL + interval."""
    skews = [3_600_000_000, -3_600_000_000, 0] if fault == "skew" else [0, 0, 0]
    workers += [Worker(do="lead", url=own_valkey.url, keys=keys_folder, skew_us=skew) for skew in skews]
    owners = {worker.line()["owner"]: worker for worker in workers}
    watch = Watch(own_valkey.url)
    seconds, micros = watch.redis.time()  # type: ignore[misc]
    opened_us = int(watch.fields()["slid_at"])
    assert opened_us <= seconds * 1_000_000 + micros
    watch.people(1_000_000)
    watch.until_hi(20)
    frozen: list[Worker] = []
    for _ in range(2):
        leader = owners[watch.leader()]
        before = watch.hi()
        if fault == "kill":
            leader.signal(signal.SIGKILL)
        else:
            leader.signal(signal.SIGSTOP)
            frozen.append(leader)
        handed_over = time.monotonic()
        while owners.get(watch.leader()) in (leader, None):
            assert time.monotonic() - handed_over < 20, "nobody took over"
            time.sleep(0.005)
        watch.until_hi(before)
        ttl_left_us = int(watch.fields()["leader_until"]) - int(watch.fields()["slid_at"])
        assert ttl_left_us <= LEASE_TTL_US + 2 * INTERVAL_US
        slides_fit_the_intervals(watch, opened_us)
    for ex_leader in frozen:
        ex_leader.signal(signal.SIGCONT)  # it wakes in the middle of what it was doing, and can move nothing
    leader_before, target = watch.leader(), watch.hi()
    for worker in frozen:
        assert owners[leader_before] is not worker
    watch.until_hi(target + 30)
    slides_fit_the_intervals(watch, opened_us)
    fields = watch.fields()
    made_up_us = int(fields["slid_at"]) - opened_us
    # Every interval used up admitted one full window once people were there: none was lost in the gaps.
    first_us = INTERVAL_US * 100  # starting three interpreters takes a while, and nobody waited yet
    assert int(fields["h0"]) * INTERVAL_US >= (made_up_us - first_us) * CONFIG.window_size
    assert MOST_GAP_S < 1


def inversions(order: list[int]) -> int:
    """Pairs in the wrong order (merge sort)."""
    if len(order) < 2:
        return 0
    middle = len(order) // 2
    left, right = order[:middle], order[middle:]
    total = inversions(left) + inversions(right)
    left.sort()
    right.sort()
    i = 0
    for value in right:
        while i < len(left) and left[i] <= value:
            i += 1
        total += len(left) - i
    return total


def test_the_measure_of_disorder_itself() -> None:
    assert inversions([1, 2, 3]) == 0
    assert inversions([3, 2, 1]) == 3
    assert inversions([2, 1, 4, 3, 5]) == 2


def preferred(*pids: int) -> None:
    """Let these run before the machine's other work, where that is allowed: the order is measured, not the machine."""
    for pid in pids:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, pid, -15)


def test_w6_arrival_order_is_kept_over_four_processes(
    own_valkey: Valkey, workers: list[Worker], keys_folder: str
) -> None:
    """Who was answered before another arrived is always ahead; the normalised Kendall tau distance between arrival and
    position is ≤ 1e-4; positions are unique and without gaps."""
    people, seconds = 500, 20.0
    orders = [{"do": "join", "people": people, "seconds": seconds, "seed": seed} for seed in range(4)]
    workers += [Worker(url=own_valkey.unix_url, keys=keys_folder, **order) for order in orders]
    for worker in workers:
        assert worker.line()["ready"]
    preferred(own_valkey.pid, *(worker.process.pid for worker in workers))
    start = time.monotonic() + 0.3
    for worker in workers:
        assert worker.process.stdin is not None
        worker.process.stdin.write(f"{start}\n".encode())
        worker.process.stdin.flush()
    answers = sorted(tuple(told) for worker in workers for told in worker.line(60)["answers"])
    in_order_of_arrival = [position for _, position, _ in answers]
    assert sorted(in_order_of_arrival) == list(range(5, 5 + 4 * people)), "after the four that warmed up"
    assert overtaken(answers) == 0
    pairs = len(answers) * (len(answers) - 1) // 2
    distance = inversions(in_order_of_arrival) / pairs
    print(f"Kendall tau distance {distance:.2e} over {len(answers)} arrivals")
    assert distance <= 1e-4


def overtaken(answers: list[tuple[int, ...]]) -> int:
    """How many arrived after somebody was already answered, and still stand before them."""
    by_answer = sorted((answered_ns, position) for _, position, answered_ns in answers)
    wrong, highest, index = 0, 0, 0
    for arrived_ns, position, _ in answers:  # in order of arrival
        while index < len(by_answer) and by_answer[index][0] < arrived_ns:
            highest = max(highest, by_answer[index][1])
            index += 1
        wrong += position < highest
    return wrong


def test_the_measure_of_overtaking_itself() -> None:
    assert overtaken([(0, 1, 5), (6, 2, 9)]) == 0
    assert overtaken([(0, 2, 5), (6, 1, 9)]) == 1
    assert overtaken([(0, 2, 7), (6, 1, 9)]) == 0, "they overlapped: neither was first"
