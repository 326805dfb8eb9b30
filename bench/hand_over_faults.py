"""Fault runs of the hand-over to a shop on another domain: two rooms' servers on one Redis, a crowd, something breaks.

Each visitor joins, waits, claims, exchanges the hand-over as the shop's connector does, tries to exchange it a second
time at any server, stays in the shop and gives the visit back. Checked: never more people in the shop than fit,
nobody's position got worse, no hand-over exchanged twice, every visitor who was admitted comes in, no answer 500.
Part of `python -m bench.fault_runs`: the rows `hand_over_…`.
"""

import asyncio
import contextlib
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.fault_runs import AFTER_S, CALM_PURCHASES, PATIENCE_S, WORSE_ANSWERS, Fault, GaveUp, Rig
from frontrow.waitingroom.credentials.hand_over import bind_of
from tests.faults.proxy import Proxy
from tests.support.processes import Process
from tests.support.servers import Postgres, Sentinel, Valkey

VISITORS, CAPACITY, STAY_S = 40, 6, 0.4
SHOP = "https://shop.example"
BASE = "/v1/events/aurora/room"
CLAIMS = 5  # so often a visitor asks for a new hand-over, because the answer to the exchange was lost


@dataclass
class Crowd:
    """What the visitors saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    strange: list[str] = field(default_factory=list)
    inside: int = 0
    most_inside: int = 0
    visits: int = 0
    entered_at_s: list[float] = field(default_factory=list)
    again: int = 0  # hand-overs asked for anew
    twice: int = 0  # exchanged a second time
    stranded: int = 0  # admitted, and never came in
    older: int = 0
    worse: int = 0
    stopped: bool = False


class HandOverRig(Rig):
    """Two servers of one room, each with its own way to Redis. The audit is in PostgreSQL."""

    def env(self, number: int) -> dict[str, str]:
        return {
            "FRONTROW_ROOM_EVENTS": "aurora",
            "FRONTROW_ROOM_PORT": "0",
            "FRONTROW_ROOM_STORE": self.redis_url or f"redis://127.0.0.1:{self.redis_ways[number].port}/0",
            "FRONTROW_ROOM_FOLDER": str(self.machine(number) / "room"),
            "FRONTROW_ROOM_AUDIT": self.postgres.url,
            "FRONTROW_ROOM_SHOPS": SHOP,
            "FRONTROW_ROOM_CAPACITY": str(CAPACITY),
            "FRONTROW_ROOM_WINDOW_SIZE": "3",
            "FRONTROW_ROOM_PASS_TTL_S": "600",
            "FRONTROW_ROOM_PER_IP": "100000/second",
            "FRONTROW_ROOM_PER_PERSON": "100000/second",
            "FRONTROW_ROOM_HUMAN": "none",  # the crowd are programs
        }

    async def start(self) -> None:
        for number in range(2):
            server = RoomProcess(["room", "serve"], self.machine(number), **self.env(number))
            self.servers.append(server)
        for server in self.servers:
            server.listening()
            await server.ready()


class RoomProcess(Process):
    """`frontrow room serve`."""

    async def ready(self) -> None:
        await self._answers("/readyz", lambda answer: answer.status_code == 200)


class Visitor:
    """Comes again and again, as somebody new each time; asks any server, and again after a 503."""

    def __init__(self, number: int, rig: HandOverRig, crowd: Crowd) -> None:
        self._random, self._rig, self._crowd, self._number = random.Random(number), rig, crowd, number

    async def run(self) -> None:
        turn = 0
        async with httpx.AsyncClient(timeout=40, limits=httpx.Limits(max_connections=4), trust_env=False) as client:
            while not self._crowd.stopped:
                turn += 1
                with contextlib.suppress(GaveUp):
                    await self._visit(client, f"{self._number}-{turn}")

    async def _ask(self, client: httpx.AsyncClient, method: str, path: str, key: str = "", **more: Any) -> Any:
        """Ask until there is an answer that is not 503; whether an answer was lost on the way, and the last one."""
        headers = ({"Idempotency-Key": key} if key else {}) | more.pop("headers", {})
        for _ in range(300):
            server = self._random.choice(self._rig.servers)
            try:
                answer = await client.request(method, server.url + BASE + path, headers=headers, **more)
            except httpx.TransportError:
                await asyncio.sleep(0.2)
                continue
            self._crowd.statuses[answer.status_code] += 1
            if answer.status_code == 500 or (answer.status_code == 503 and "retry-after" not in answer.headers):
                self._crowd.strange.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            if answer.status_code not in (500, 502, 503):
                return answer
            await asyncio.sleep(min(1.0, float(answer.headers.get("retry-after", 1))))
        raise GaveUp

    async def _visit(self, client: httpx.AsyncClient, name: str) -> None:
        crowd, verifier = self._crowd, secrets.token_urlsafe(32)
        joined = await self._ask(client, "POST", "/join", f"{name}-join")
        if joined.status_code != 201:
            crowd.strange.append(f"join: {joined.status_code} {joined.text[:200]}")
            raise GaveUp
        place = {"Authorization": f"Bearer {joined.json()['place']}"}
        await self._wait(client, place)
        given = await self._enter(client, name, place, verifier)
        if crowd.stopped:
            return
        await asyncio.sleep(STAY_S * (0.5 + self._random.random()))
        crowd.inside -= 1
        ended = await self._ask(client, "POST", "/give-back", headers={"Frontrow-Pass": given})
        if ended.status_code != 200:
            crowd.strange.append(f"give-back: {ended.status_code} {ended.text[:200]}")

    async def _enter(self, client: httpx.AsyncClient, name: str, place: dict[str, str], verifier: str) -> str:
        """Claim and exchange; the shop's pass. A visitor is inside from the claim on."""
        crowd, admitted = self._crowd, False
        claim = {"page": True, "wish": f"{bind_of(verifier)}@{SHOP}/seats"}
        for _ in range(CLAIMS):
            claimed = await self._ask(client, "POST", "/claim", f"{name}-claim", headers=place, json=claim)
            if claimed.status_code != 201:
                break
            if not admitted:
                admitted = True
                crowd.inside += 1
                crowd.most_inside = max(crowd.most_inside, crowd.inside)
            body = {"token": claimed.json()["next"].rpartition("frontrow=")[2], "verifier": verifier}
            exchanged = await self._ask(client, "POST", "/exchange", json=body)
            if exchanged.status_code == 200:
                crowd.visits += 1
                crowd.entered_at_s.append(time.monotonic())
                second = await self._ask(client, "POST", "/exchange", json=body)
                crowd.twice += second.status_code == 200
                return str(exchanged.json()["pass"])
            crowd.again += 1
        if admitted:
            crowd.stranded += 1
            crowd.strange.append(f"admitted, and never came in: {claimed.status_code} {claimed.text[:150]}")
        raise GaveUp

    async def _wait(self, client: httpx.AsyncClient, place: dict[str, str]) -> None:
        """Until it is this visitor's turn."""
        crowd = self._crowd
        least, above = sys.maxsize, 0
        for _ in range(3_000):
            status = (await self._ask(client, "GET", "/status", headers=place)).json()
            ahead = status.get("ahead")
            if ahead is not None:
                above = above + 1 if ahead > least else 0
                crowd.older += ahead > least
                crowd.worse += above == WORSE_ANSWERS
                least = min(least, ahead)
            if status.get("state") == "active":
                return
            if status.get("state") == "expired" or crowd.stopped:
                raise GaveUp
            await asyncio.sleep(0.1)
        raise GaveUp


@contextlib.asynccontextmanager
async def rigged(fault: Fault) -> AsyncIterator[HandOverRig]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres = stack.enter_context(Postgres("-c", "fsync=off", "-c", "max_connections=60"))
        valkey = stack.enter_context(Valkey())
        rig = HandOverRig(folder, postgres, valkey)
        if fault.sentinel:
            stack.enter_context(Valkey("--replicaof", f"127.0.0.1 {valkey.port}"))
            rig.redis_url = stack.enter_context(Sentinel(valkey)).url
            while b"state=online" not in valkey.command("INFO", "replication"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        async with contextlib.AsyncExitStack() as ways:
            for _ in range(2):
                rig.redis_ways.append(await ways.enter_async_context(Proxy(valkey.port)))
            try:
                await rig.start()
                yield rig
            finally:
                for process in rig.servers:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()


async def run(fault: Fault) -> list[str]:
    """Run it; what was wrong."""
    async with rigged(fault) as rig:
        crowd = Crowd()
        visitors = [asyncio.create_task(Visitor(number, rig, crowd).run()) for number in range(VISITORS)]
        deadline_s = time.monotonic() + PATIENCE_S
        while crowd.visits < CALM_PURCHASES and time.monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        calm = crowd.visits
        await fault.run(rig)
        healed_s = time.monotonic()
        await asyncio.sleep(AFTER_S)
        crowd.stopped = True
        results = await asyncio.gather(*visitors, return_exceptions=True)
        after = [at_s for at_s in crowd.entered_at_s if at_s > healed_s]
        wrong = [f"a visitor failed: {error!r}" for error in results if isinstance(error, BaseException)]
        wrong += sorted(set(crowd.strange))[:5]
        if crowd.most_inside > CAPACITY:
            wrong.append(f"{crowd.most_inside} people were in a shop of {CAPACITY}")
        wrong += [f"{crowd.worse} positions got worse"] if crowd.worse else []
        wrong += [f"{crowd.twice} hand-overs were exchanged twice"] if crowd.twice else []
        wrong += [] if after else ["nobody came in after healing"]
        again_s = min(after) - healed_s if after else float("inf")
        print(
            f"{fault.name:32} came in {calm}+{crowd.visits - calm - len(after)}+{len(after)}  "
            f"again after {again_s:4.1f} s  "
            f"most inside {crowd.most_inside} of {CAPACITY}  worse {crowd.worse}  twice {crowd.twice}  "
            f"asked anew {crowd.again}  stranded {crowd.stranded}  older answers {crowd.older}  "
            f"{dict(sorted(crowd.statuses.items()))}",
            flush=True,
        )
        return wrong
