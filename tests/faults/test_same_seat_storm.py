"""N4, B3: 1,000 callers in 4 processes want the same seat at once, on real servers, again and again.

25 seats in the suite; `FRONTROW_STORM_ROUNDS=200` looks longer (`make soak`).
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from tests.boxoffice.shop import EVENT, NOW, shop_plan
from tests.contracts.seat_claims import seats_of
from tests.faults.storm_worker import ROWS, SEATS

PROCESSES, CALLERS = 4, 1_000
ROUNDS = int(os.environ.get("FRONTROW_STORM_ROUNDS") or 25)


async def fill(redis_url: str) -> None:
    claims = RedisClaims(redis_url)
    claims.learn(EVENT, shop_plan(ROWS, SEATS))
    assert await claims.rebuild(EVENT, seats_of, NOW)
    await claims.aclose()


@pytest.mark.timeout(900)
def test_one_winner_and_999_clean_refusals_in_each_round(postgres_ledger_url: str, redis_url: str) -> None:
    asyncio.run(fill(redis_url))
    command = [sys.executable, "-m", "tests.faults.storm_worker", postgres_ledger_url, redis_url]
    root = Path(__file__).parents[2]
    workers = [
        subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
        for n in range(PROCESSES)
    ]
    try:
        assert [_line(worker) for worker in workers] == ["ready"] * PROCESSES
        fences = [_round(workers, seat) for seat in range(ROUNDS)]
    finally:
        for worker in workers:
            try:
                worker.communicate(timeout=30)
            finally:
                worker.kill()
    assert len(set(fences)) == ROUNDS
    with psycopg.connect(postgres_ledger_url) as reader:
        rows = reader.execute("SELECT seat_index, count(*) FROM booking_seats WHERE active = 1 GROUP BY 1").fetchall()
    assert dict(rows) == dict.fromkeys(range(ROUNDS), 1)


def _round(workers: "list[subprocess.Popen[str]]", seat: int) -> int:
    """Everybody at once for one seat; the winner's fence."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(json.dumps({"seat": seat, "callers": CALLERS // PROCESSES}) + "\n")
        worker.stdin.flush()
    answers = [json.loads(_line(worker)) for worker in workers]
    won = [winner for answer in answers for winner in answer["won"]]
    assert len(won) == 1, f"seat {seat}: {won}"
    assert sum(answer["refused"] for answer in answers) == CALLERS - 1
    return int(won[0][1])


def _line(worker: "subprocess.Popen[str]") -> str:
    assert worker.stdout is not None
    return worker.stdout.readline().strip()
