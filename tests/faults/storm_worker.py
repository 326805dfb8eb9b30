"""One process of a storm: a server of the box office that runs what its parent tells it, a line in, a line out (JSON).

`{"do": "same_seat", "seat": n, "callers": c}`: c fans want the same seat at once; answers how many won, were refused
cleanly, or got anything else. Run as `python -m tests.faults.storm_worker <postgres url> <redis url> <name>`.
"""

import asyncio
import json
import sys
from typing import Any

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.holds.model.holds import Hold, SeatsTaken
from frontrow.core.clock import SystemClock
from tests.boxoffice.shop import Shop, shop_event, shop_plan

ROWS, SEATS = 20, 20


async def same_seat(shop: Shop, name: str, seat: int, callers: int) -> dict[str, Any]:
    asked = (shop.hold(f"{name}.{seat}.{caller}", seat) for caller in range(callers))
    told = await asyncio.gather(*asked, return_exceptions=True)
    won = [answer for answer in told if isinstance(answer, Hold)]
    refused = sum(isinstance(answer, SeatsTaken) and answer.seats == (seat,) for answer in told)
    return {"won": [(hold.booking_id, hold.fence) for hold in won], "refused": refused, "asked": callers}


async def serve(postgres_url: str, redis_url: str, name: str) -> None:
    ledger = await open_ledger(postgres_url)
    claims = RedisClaims(redis_url, timeout_s=10.0)
    shop = Shop(claims, ledger, SystemClock(), shop_event(max_per_person=1), shop_plan(ROWS, SEATS))
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        answer = await same_seat(shop, name, order["seat"], order["callers"])
        print(json.dumps(answer), flush=True)
    await shop.holds.aclose()
    await claims.aclose()
    await ledger.aclose()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
