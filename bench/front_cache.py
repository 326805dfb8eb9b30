"""What a crowd of guests costs the servers, directly and through deploy/'s nginx.

Run: python -m bench.front_cache [--requests 20000]. Guests ask for an event, its page, the list of events, who is
served now and the page of a full room. Prints the CPU of the Frontrow server per request in both cases.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from bench.api_servers import EVENT, platform, put_on_sale
from bench.api_wire import Line, Times, cpu_of, in_parallel
from bench.measure import OUT
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.seats.formats.plan_generator import generate
from tests.support.nginx import DeployedNginx
from tests.support.servers import Postgres, Valkey

LINES, DIRECT_LINES = 100, 8  # a server alone would refuse most of a hundred who ask for pages at once
IDLE_S = 5.0
PATHS = {
    "page of an event": f"/events/{EVENT}",
    "page of all events": "/",
    "event": f"/v1/events/{EVENT}",
    "events": "/v1/events",
    "now-serving": f"/v1/events/{EVENT}/room/now-serving",
    "page of a full room": f"/v1/events/{EVENT}/room/overflow",
}
WITHOUT_LIMIT = {  # one address asks for the whole crowd, over few connections
    "limit_req zone=requests burst=200 nodelay;": "",
    "limit_conn connections 200;": "",
    "keepalive_timeout 30s;": "keepalive_timeout 30s; keepalive_requests 10000000;",
}
GUEST = "accept-encoding: gzip\r\naccept-language: en\r\n"


async def cost_us(path: str, port: int, server: int, count: int, lines: int, idle: float) -> float:
    """CPU of the server per request, without what it uses while nobody asks."""
    odd: list[int] = []

    async def each(line: Line, _: int) -> None:
        status, _ = await line.ask("ask", "GET", path, headers=GUEST)
        if status != 200:
            odd.append(status)

    async with cpu_of({"server": server}) as cpu:
        await in_parallel(range(count), each, port, lines, Times())
    if odd:
        raise SystemExit(f"{path} answered {odd[0]}")
    return max(0.0, cpu["server"] - idle * cpu["wall"]) / count * 1e6


async def idle_share(server: int) -> float:
    """The share of a core that the server uses while nobody asks."""
    async with cpu_of({"server": server}) as cpu:
        await asyncio.sleep(IDLE_S)
    return cpu["server"] / cpu["wall"]


def measure(count: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder, Valkey() as valkey, Postgres() as postgres:
        migrate(postgres.url)
        asyncio.run(put_on_sale(postgres.url, generate("stadium", 5_000)))
        with platform(Path(folder), valkey.url, postgres.url) as (pid, port):
            changes = {"127.0.0.1:8000": f"127.0.0.1:{port}", **WITHOUT_LIMIT}
            with DeployedNginx("upstream.conf", changes) as nginx:
                time.sleep(1)
                idle = asyncio.run(idle_share(pid))
                return {
                    name: {
                        "direct_us": asyncio.run(cost_us(path, port, pid, count // 10, DIRECT_LINES, idle)),
                        "nginx_us": asyncio.run(cost_us(path, nginx.port, pid, count, LINES, idle)),
                    }
                    for name, path in PATHS.items()
                }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="per path, through nginx")
    found = measure(parser.parse_args().requests)
    print("| a guest asks for | CPU of the server, µs | through nginx, µs | share |\n|---|---:|---:|---:|")
    for name, cost in found.items():
        share = cost["nginx_us"] / cost["direct_us"] if cost["direct_us"] else 0.0
        print(f"| {name} | {cost['direct_us']:,.0f} | {cost['nginx_us']:,.2f} | {share:.2%} |")
    OUT.mkdir(exist_ok=True)
    (OUT / "front-cache.json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
