"""One server process of bench/seats.py: a box office that runs the crowds its parent orders, a JSON line in and out.

    python -m bench.seats_worker <postgres url> <event> <seats> <number> <redis url> ...

Its crowd is made beforehand, so what is measured is the service: `overhead_us` is the cost of the crowd itself, an
attempt, with a service that answers nothing.
"""

import asyncio
import json
import sys
import time
from typing import Any

import uvloop

from bench.measure import options
from bench.seats_load import TURN, Ask, Crowd, Office, percentiles, tidy
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.seat_map.redis_frame_log import RedisFrameLogs
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.seats.formats.plan_generator import generate


class _Silent:
    """A hold service that answers nothing, for the crowd's own cost."""

    class event:  # noqa: N801 - stands for an attribute
        id = ""

    class holds:  # noqa: N801
        @staticmethod
        def refusal(event_id: str, shop_pass: ShopPass, seats: tuple[str]) -> bool:
            return True

        attempt = None


def overhead_us(asks: list[Ask]) -> float:
    """CPU of sending an attempt and noting its answer."""
    crowd = Crowd(_Silent, asks)  # type: ignore[arg-type]
    crowd._rate = 1.0
    begin = time.process_time()
    for first in range(0, len(asks), TURN):
        crowd._turn(first, min(first + TURN, len(asks)))
    return (time.process_time() - begin) / max(1, len(asks)) * 1e6


async def run(office: Office, number: int, turn: int, order: dict[str, Any]) -> dict[str, Any]:
    count, rate = order["count"], order.get("rate", 0.0)
    # other fans and other wishes each turn: nobody asks again for the very seat they have
    crowd = Crowd(office, office.asks(count, 1_000 + number + 97 * turn, f"p{number}.{turn}."))
    tidy()
    await asyncio.sleep(1.5)  # making the crowd kept the server from its own work: the map gets in step again
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    cpu_s, wall = time.process_time(), time.perf_counter()
    outcome = await (crowd.at_rate(rate, order["seconds"]) if rate else crowd.storm(order["times"]))
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall
    stats = office.holds.stats
    return {
        "won": outcome.won,
        "refused_locally": outcome.refused_locally,
        "refused_by_claims": outcome.refused,
        "failed": outcome.failed,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "all_ms": percentiles(outcome.waits_us),
        "won_ms": percentiles(outcome.won_waits_us),
        "audited": stats.audited,
        "audited_free": stats.audited_free,
        "overhead_us": overhead_us(list(crowd.asks[:50_000])),
    }


async def serve(postgres_url: str, event_id: str, seats: int, number: int, redis_urls: list[str]) -> None:
    ledger = await open_ledger(postgres_url, warm=True)
    claims = RedisClaims(redis_urls, timeout_s=10.0)
    logs = RedisFrameLogs(redis_urls[0])
    office = Office(event_id, generate("stadium", seats), claims, ledger, log=logs.log_of(event_id))
    assert await office.recovery.check(event_id)
    await office.feed.start()
    print("open", flush=True)
    loop, turn = asyncio.get_running_loop(), 0
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await run(office, number, turn, json.loads(line))), flush=True)
        turn += 1
    await office.feed.stop()
    await office.holds.aclose()
    await claims.aclose()
    await logs.aclose()
    await ledger.aclose()


if __name__ == "__main__":
    arguments = options(__doc__)
    for name, kind in (("postgres_url", str), ("event", str), ("seats", int), ("number", int)):
        arguments.add_argument(name, type=kind)
    arguments.add_argument("redis_url", nargs="+")
    asked = arguments.parse_args()
    uvloop.run(serve(asked.postgres_url, asked.event, asked.seats, asked.number, asked.redis_url))
