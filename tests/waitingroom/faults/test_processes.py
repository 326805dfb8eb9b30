"""W4, F5: real processes and Redis: leaders killed, frozen and with wrong clocks."""

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

from frontrow.waitingroom.credentials.room_keys import RoomKeys
from tests.support.eventually import eventually_sync
from tests.support.servers import Valkey
from tests.waitingroom.faults.worker import CONFIG, EVENT, INTERVAL_US, LEADERSHIP_TTL_US

ROOT = Path(__file__).parents[3]
MOST_GAP_S = (LEADERSHIP_TTL_US + INTERVAL_US) / 1e6


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
        self.process.wait(60)


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

    def now_us(self) -> int:
        seconds, micros = self.redis.time()  # type: ignore[misc]
        return int(seconds * 1_000_000 + micros)

    def people(self, count: int) -> None:
        self.redis.hincrby(self.key, "i0", count)

    def hi(self) -> int:
        return int(self.fields().get("h0", 0))

    def leader(self) -> str:
        return self.fields().get("leader", "")

    def until_hi(self, hi: int, seconds: float = 20.0) -> float:
        """When the window got beyond `hi`; how long that took."""
        start = time.monotonic()
        eventually_sync(self.hi, seconds, until=lambda now: now > hi, every_s=0.005)
        return time.monotonic() - start


def slides_fit_the_intervals(watch: Watch, opened_us: int) -> None:
    """Never two slides for an interval: the window is at most one size for each interval since the start."""
    # One is due at the start, one may fall between the two readings.
    due = (watch.now_us() - opened_us) // INTERVAL_US + 2
    assert watch.hi() <= due * CONFIG.window_size


@pytest.mark.parametrize("fault", ["kill", "freeze", "skew"])
def test_w4_leaders_killed_frozen_or_with_wrong_clocks(
    fault: str, own_valkey: Valkey, workers: list[Worker], keys_folder: str
) -> None:
    """No slide is lost or made twice, and the gap without a leader is bounded by TTL + interval."""
    skews = [3_600_000_000, -3_600_000_000, 0] if fault == "skew" else [0, 0, 0]
    workers += [Worker(url=own_valkey.url, keys=keys_folder, skew_us=skew) for skew in skews]
    owners = {worker.line()["owner"]: worker for worker in workers}
    watch = Watch(own_valkey.url)
    opened_us = int(watch.fields()["slid_at"])
    assert opened_us <= watch.now_us()
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
        others = [owner for owner, worker in owners.items() if worker is not leader]
        eventually_sync(watch.leader, 20, until=others.__contains__, every_s=0.005)  # another takes over
        watch.until_hi(before)
        until_us = int(watch.fields()["leader_until"])
        assert until_us <= watch.now_us() + LEADERSHIP_TTL_US, "no leadership is longer than its time to live"
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
