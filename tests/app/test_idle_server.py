"""What a server does while nobody comes (N7): a minute of it, on a clock that jumps from timer to timer."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.ledger.engine import due_work
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.core.clock import US_PER_S
from frontrow.web.server.app import run_platform
from tests.support.fast_time import FastTimeLoop
from tests.web.api.support import settings_for

START_US = 1_800_000_000 * US_PER_S


def test_n7_jobs_of_an_idle_server_sleep_and_one_read_per_half_second_asks_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that polls at its own pace again would ask ten times as often, and wake the process each time."""
    loop = FastTimeLoop()
    monkeypatch.setattr(due_work, "time", SimpleNamespace(monotonic=loop.time))
    asked: Counter[str] = Counter()

    async def idle() -> tuple[int, int]:
        async with open_platform(settings_for(tmp_path), clock=lambda: START_US + int(loop.time() * US_PER_S)) as one:
            read = one.ledger.store.read

            async def counted(query: Query) -> Any:
                asked[query.name] += 1
                return await read(query)

            monkeypatch.setattr(one.ledger.store, "read", counted)
            async with run_platform(one):
                await asyncio.sleep(90)
                asked.clear()
                wakes, writes = loop.wakes, one.ledger.line.calls
                await asyncio.sleep(60)
                return loop.wakes - wakes, one.ledger.line.calls - writes

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        wakes, writes = runner.run(idle())
    assert asked["due_work"] <= 150, "two per second, and a few after writes"
    assert asked["catalogue_version"] <= 151
    assert sum(asked.values()) <= 400, asked
    assert writes <= 40
    assert wakes <= 60 * 30
