"""Two shops, Redis, PostgreSQL and the crowd on hosts of their own (network namespaces), and real partitions between
them (F8). It needs root; without it, it says so and ends with exit code 2.

One sale runs through all partitions of `PARTITIONS`, each of which is mended before the next. The fans fight for few
seats with short holds, and every call about a seat is written down. At the end the history must be linearizable
(tests/faults/linearizability.py says the law), and everything that `bench.fault_runs` checks must hold: no seat sold
twice, no acknowledged booking lost, no answer 500, no answer after more than 10 s, nobody's position got worse.

    python -m bench.network_partitions [--rounds 1] [--history FILE]
    python -m bench.network_partitions --check FILE    # check a kept history again
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import httpx
import msgspec

from bench.fault_runs import FANS, Fan, Fault, GaveUp, Record, Rig, check, nothing, until_calm
from bench.network_hosts import Cable, Host, Network, PostgresOn, ProcessOn, ValkeyOn, what_is_missing
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.core.clock import SystemClock
from tests.boxoffice.plan_samples import small_plan
from tests.faults.linearizability import NEVER_US, Act, Call, Verdict
from tests.faults.linearizability import check as check_linearizable
from tests.web.api.support import EVENT_ID, put_into

HOLD_S = 5
CUT_S, MENDED_S = 8.0, 6.0
PORT = 8000
INSIDE = "FRONTROW_NETWORK_INSIDE"  # the network's own process: it runs on the crowd's host
PARTITIONS = {
    "shop 1 | Redis": ("shop1-redis",),
    "shop 1 | PostgreSQL": ("shop1-postgres",),
    "shop 1 | both stores": ("shop1-redis", "shop1-postgres"),
    "both shops | Redis": ("shop1-redis", "shop2-redis"),
    "both shops | PostgreSQL": ("shop1-postgres", "shop2-postgres"),
    "shop 1 | Redis, shop 2 | PostgreSQL": ("shop1-redis", "shop2-postgres"),
    "shop 1 | the crowd": ("crowd-shop1",),
}


class SeatFan(Fan):
    """Wants one of few seats, and writes down what was asked and answered."""

    def __init__(self, number: int, rig: Rig, record: Record, seats: list[str], calls: list[Call]) -> None:
        super().__init__(number, rig, record)
        self._seats, self._calls, self._clock = seats, calls, SystemClock()

    async def _buy(self, client: httpx.AsyncClient, name: str) -> None:
        event = f"/v1/events/{EVENT_ID}"
        shop = {"Frontrow-Pass": await self._enter(client, event, name)}
        for turn in range(12):
            seat = self._random.randrange(len(self._seats))
            key, began_us = f"{name}-hold{turn}", self._clock()
            wish = {"seats": [self._seats[seat]]}
            try:
                held = await self._ask(client, "POST", f"{event}/holds", key, headers=shop, json=wish)
            except GaveUp:  # nobody knows whether it was carried out, and for whom
                self._note(Act.TAKE, seat, key, began_us, NEVER_US)
                self._note(Act.EXPIRE, seat, key, began_us, NEVER_US)
                raise
            if held.status_code == 201:
                await self._end(client, name, seat, began_us, held, shop)
                return
            if held.status_code not in (409, 410, 422, 429):
                raise GaveUp
            await asyncio.sleep(0.05)

    async def _enter(self, client: httpx.AsyncClient, event: str, name: str) -> str:
        joined = await self._ask(client, "POST", f"{event}/room/join", f"{name}-join")
        place = {"Authorization": f"Bearer {joined.json()['place']}"}
        await self._wait(client, f"{event}/room/status", name, place)
        claimed = await self._ask(client, "POST", f"{event}/room/claim", f"{name}-claim", headers=place)
        if claimed.status_code != 201:
            raise GaveUp
        return str(claimed.json()["pass"])

    async def _end(
        self, client: httpx.AsyncClient, name: str, seat: int, began_us: int, held: httpx.Response, shop: dict[str, str]
    ) -> None:
        body = held.json()
        booking, path = body["booking"], f"/v1/bookings/{body['booking']}"
        self._note(Act.TAKE, seat, booking, began_us, self._clock())
        # Answers give whole seconds, and a release asked for later may still end it: a second in the shop's favour.
        ends_us = round(datetime.fromisoformat(body["expires_at"]).timestamp() * 1e6) - 1_000_000
        self._note(Act.EXPIRE, seat, booking, ends_us, NEVER_US)
        own = shop | {"Frontrow-Booking": body["booking_token"]}
        chance = self._random.random()
        if chance < 0.2:  # walks away
            return
        began_us = self._clock()
        if chance < 0.9:
            with self._heard(Act.DROP, seat, booking, began_us) as heard:
                freed = await self._ask(client, "DELETE", f"{path}/hold", f"{name}-free", headers=own)
                heard.append(freed.status_code == 200)
            return
        with self._heard(Act.SELL, seat, booking, began_us) as heard:
            pay = {"method": "pm_card_visa", "email": f"fan{name}@example.org"}
            paid = await self._ask(client, "POST", f"{path}/pay", f"{name}-pay", headers=own, json=pay)
            for _ in range(60):
                if paid.status_code != 200 or paid.json().get("state") == "confirmed":
                    break
                await asyncio.sleep(0.2)
                paid = await self._ask(client, "GET", path, name, headers=own)
            heard.append(paid.status_code == 200 and paid.json().get("state") == "confirmed")
        if heard[-1:] == [True]:
            self._record.bought[booking] = body["seats"]
            self._record.confirmed_at_s.append(time.monotonic())
            began_us = self._clock()
            seen = await self._ask(client, "GET", path, name, headers=own)
            if seen.status_code == 200 and seen.json().get("state") == "confirmed":
                self._note(Act.SEE, seat, booking, began_us, self._clock())

    def _note(self, act: Act, seat: int, booking: str, began_us: int, ended_us: int) -> None:
        self._calls.append(Call(act, seat, booking, began_us, ended_us))

    @contextlib.contextmanager
    def _heard(self, act: Act, seat: int, booking: str, began_us: int) -> Iterator[list[bool]]:
        """Note the call: with its answer if there was one that says it happened, else as one that may have happened."""
        heard: list[bool] = []
        try:
            yield heard
        finally:
            self._note(act, seat, booking, began_us, self._clock() if heard[-1:] == [True] else NEVER_US)


class Shops(Rig):
    """The rig on hosts of its own."""

    def __init__(self, folder: Path, network: Network, crowd: Host) -> None:
        hosts = {name: network.add_host(name) for name in ("shop1", "shop2", "redis", "postgres")}
        pairs = [(shop, store) for shop in ("shop1", "shop2") for store in ("redis", "postgres")]
        self.cables: dict[str, Cable] = {f"{one}-{two}": network.join(hosts[one], hosts[two]) for one, two in pairs}
        for name, host in hosts.items():
            self.cables[f"crowd-{name}"] = network.join(crowd, host)
        self.hosts = hosts
        postgres = PostgresOn(hosts["postgres"], "-c", "fsync=off", "-c", "max_connections=60")
        super().__init__(folder, postgres, ValkeyOn(hosts["redis"], self.cables["crowd-redis"].far))

    def url_for(self, who: str) -> str:
        return f"postgresql://postgres@{self.cables[f'{who}-postgres'].far}:{self.postgres.port}/postgres"

    def env(self, number: int) -> dict[str, str]:
        shop = f"shop{number % 2 + 1}"
        return {
            "FRONTROW_REDIS_URL": f"redis://{self.cables[f'{shop}-redis'].far}:{self.valkey.port}/0",
            "FRONTROW_LEDGER_URL": self.url_for(shop),
            "FRONTROW_SERVER_JOBS_INSIDE": "false",
            "FRONTROW_MAIL_URL": str(self.folder / "mails"),
            "FRONTROW_ROOM_HUMAN": "none",  # the crowd are programs
        }

    async def start(self) -> None:
        for number, shop in enumerate(("shop1", "shop2")):
            command = ["serve", "--host", "0.0.0.0", "--port", str(PORT)]
            self.servers.append(ProcessOn(self.hosts[shop], command, self.machine(number), **self.env(number)))
        self.worker = ProcessOn(self.hosts["shop2"], ["work"], self.machine(2), **self.env(1))
        for number, server in enumerate(self.servers, start=1):
            server.listening()
            server.url = f"http://{self.cables[f'crowd-shop{number}'].far}:{PORT}"
            await server.ready()

    def stop(self) -> None:
        for process in [*self.servers, self.worker]:
            if process is not None:
                with contextlib.suppress(Exception):
                    process.kill()
                with contextlib.suppress(Exception):
                    process.stop()


async def sale(rounds: int, crowd: Host) -> tuple[list[Call], list[str]]:
    """The history and what was wrong."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        network = stack.enter_context(Network())
        shops = Shops(folder, network, crowd)
        stack.enter_context(shops.postgres)
        stack.enter_context(shops.valkey)
        stack.callback(shops.stop)
        await asyncio.to_thread(migrate, shops.url_for("crowd"))
        ledger, plan = await open_ledger(shops.url_for("crowd")), small_plan(rows=26, seats=150)
        await put_into(ledger, SystemClock()(), plan, hold_ttl_s=HOLD_S)
        await ledger.aclose()
        await shops.start()
        record, calls = Record(), list[Call]()
        few = list(plan.seat_ids[:2_000])
        fans = [SeatFan(number, shops, record, few[: 40 + 60 * rounds], calls) for number in range(FANS)]
        running = [asyncio.create_task(fan.run()) for fan in fans]
        await until_calm(record)
        for _ in range(rounds):
            for name, cut in PARTITIONS.items():
                await partition(shops, record, name, cut)
        for fan in fans:
            fan.stop()
        done = await asyncio.gather(*running, return_exceptions=True)
        wrong = [f"a fan failed: {error!r}" for error in done if isinstance(error, BaseException)]
        wrong += await check(shops, record, Fault("partitions", nothing, kills_server=True), shops.url_for("crowd"))
        print(f"answers {dict(sorted(record.statuses.items()))}, longest {record.longest_s:.1f} s, ", end="")
        print(f"positions older {record.older}, worse {record.worse}, bought {len(record.bought)}")
        return calls, wrong


async def partition(shops: Shops, record: Record, name: str, cut: tuple[str, ...]) -> None:
    """Cut, wait, mend, wait until somebody buys again."""
    before = len(record.bought)
    for cable in cut:
        shops.cables[cable].cut()
    await asyncio.sleep(CUT_S)
    during, mended_s = len(record.bought), time.monotonic()
    for cable in cut:
        shops.cables[cable].mend()
    await asyncio.sleep(MENDED_S)
    after = [at_s for at_s in record.confirmed_at_s if at_s > mended_s]
    again = f"{after[0] - mended_s:.1f} s" if after else "not within the pause"
    print(f"{name:38} bought {during - before} + {len(after)}, again after {again}", flush=True)


def read_history(path: Path) -> list[Call]:
    return [msgspec.json.decode(line, type=Call) for line in path.read_bytes().splitlines()]


def write_history(path: Path, calls: Iterable[Call]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(msgspec.json.encode(call) for call in calls))


def report(calls: list[Call]) -> Verdict:
    """Say what the law says about this history. The canary: with one sale more of a sold seat it must be rejected."""
    verdict = check_linearizable(calls)
    print(
        f"{verdict.calls:,} calls about {verdict.seats} seats:", "linearizable" if verdict.holds else "NOT linearizable"
    )
    sold = next((call for call in calls if call.act is Act.SEE), None)
    if sold is None:
        raise SystemExit("nobody bought anything: this history proves nothing")
    last_us = max(call.began_us for call in calls) + 1
    twice = [Call(act, sold.seat, "canary", last_us + n, last_us + n) for n, act in enumerate((Act.TAKE, Act.SELL))]
    if check_linearizable([*calls, *twice]).holds:
        raise SystemExit("the canary was not rejected: the checker is broken")
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, help="times that all partitions are played")
    parser.add_argument("--history", type=Path, default=Path("bench/out/network_partitions.jsonl"))
    parser.add_argument("--check", type=Path, help="only check this history")
    options = parser.parse_args()
    if options.check:
        return int(not report(read_history(options.check)).holds)
    missing = what_is_missing()
    if missing:
        print(f"NOT CHECKED ON THIS MACHINE: network partitions ({missing})")
        return 2
    crowd = Host("crowd")
    if not os.environ.get(INSIDE):
        with Network() as network:
            network.add_host("crowd")
            again = [*crowd.enter, sys.executable, "-m", "bench.network_partitions", *sys.argv[1:]]
            return subprocess.run(again, env=os.environ | {INSIDE: crowd.namespace}).returncode
    crowd.namespace = os.environ[INSIDE]
    calls, wrong = asyncio.run(sale(options.rounds, crowd))
    write_history(options.history, calls)
    verdict = report(calls)
    wrong += [f"seat {seat} has no order that explains it" for seat in verdict.broken]
    wrong += [f"seat {seat} was not decided" for seat in verdict.undecided]
    for line in wrong:
        print(f"    {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
