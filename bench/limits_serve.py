"""`make bench-limits-serve`: what `frontrow-limits serve` costs, beside a bare hello of the same servers.

CPU per call is that of the service's process (all threads), and of Redis where it counts there, in the least disturbed
of several rounds. "per s on 2 cores" is what two cores have room for at that CPU: 2 s divided by it. The measured rate
shares the same cores with the client, which costs as much again, so it says less.

Latencies are measured at half of the targets, by a client that sends at planned times whether or not answers came (open
loop), from the planned time on. The same for the frozen store: Redis is stopped with SIGSTOP and every answer is timed.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import uvloop

from bench.http_load import cpu_s, load
from bench.measure import Target, report
from frontrow.limits_service import envoy_messages as messages
from tests.support.servers import Valkey

ROUNDS = 3
CALLS = 20_000
BATCH = 100
SINGLE_PER_S, BATCHED_PER_S = 10_000, 100_000
LATENCY_S, LATENCY_ROUNDS = 1.0, 10
FROZEN_S, FROZEN_ROUNDS = 2.0, 6
FROZEN_PER_S = 500
CONNECTIONS = 32
KEYS = 10_000
GRPC_CALLS, GRPC_TASKS = 6_000, 32
RULES = """
[limits]
store = "{store}"
[[limits.rules]]
name = "api"
quota = "1000000/minute"
key = ["user"]
[[domains]]
domain = "edge"
[[domains.descriptors]]
key = "remote_address"
rate_limit = {{ unit = "minute", requests_per_unit = 1000000 }}
"""
HELLO = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


def post(path: bytes, body: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (path, len(body)) + body


def make_check(number: int) -> bytes:
    return post(b"/v1/check", b'{"key":"user:%d"}' % (number % KEYS))


def make_batch(number: int) -> bytes:
    checks = [{"key": f"user:{(BATCH * number + at) % KEYS}"} for at in range(BATCH)]
    return post(b"/v1/batch", json.dumps({"checks": checks}, separators=(",", ":")).encode())


_BATCHES = [make_batch(number) for number in range(KEYS // BATCH)]


def next_batch(number: int) -> bytes:
    return _BATCHES[number % len(_BATCHES)]


@contextlib.contextmanager
def serve(store: str) -> Iterator[tuple[int, dict[str, int]]]:
    """The service with one worker: its process, and its ports by scheme."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "limits.toml"
        file.write_text(RULES.format(store=store))
        command = [sys.executable, "-m", "frontrow.limits_service.command", "serve", str(file)]
        process = subprocess.Popen(
            [*command, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "FRONTROW_LIMITS_FILE": ""},
        )  # fmt: skip
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()[2:]
            yield (
                process.pid,
                {scheme: int(rest.rpartition(":")[2]) for scheme, rest in (w.split("://") for w in words)},
            )
        finally:
            process.terminate()
            process.wait(30)


# -- CPU -------------------------------------------------------------------------------------------------------------


def http_cost(pid: int, port: int, make: Any, total: int, store_pid: int | None) -> dict[str, float]:
    """CPU of the service and of its store per request, and the rate, in the best of some rounds."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        before_s = cpu_s(store_pid) if store_pid else 0.0
        done = load(pid, port, make, total=total, connections=64)
        assert done.failed == 0, f"{done.failed} requests failed"
        store_us = (cpu_s(store_pid) - before_s) / done.requests * 1e6 if store_pid else 0.0
        if not best or done.cpu_us + store_us < best["cpu_us"] + best["store_us"]:
            best = {"cpu_us": done.cpu_us, "store_us": store_us, "per_s": done.per_s}
    return best


async def grpc_cost(
    pid: int, port: int, store_pid: int | None, method: str, request: Any, answer: Any
) -> dict[str, float]:
    """The same for calls over gRPC."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(method, type(request).SerializeToString, answer.FromString)

        async def ask(times: int) -> None:
            for _ in range(times):
                await call(request)

        await ask(100)
        best: dict[str, float] = {}
        for _ in range(ROUNDS):
            before_s, began_s = cpu_s(pid), time.perf_counter()
            store_s = cpu_s(store_pid) if store_pid else 0.0
            await asyncio.gather(*(ask(GRPC_CALLS // GRPC_TASKS) for _ in range(GRPC_TASKS)))
            took_s, done = time.perf_counter() - began_s, GRPC_CALLS // GRPC_TASKS * GRPC_TASKS
            cpu_us = (cpu_s(pid) - before_s) / done * 1e6
            store_us = (cpu_s(store_pid) - store_s) / done * 1e6 if store_pid else 0.0
            if not best or cpu_us + store_us < best["cpu_us"] + best["store_us"]:
                best = {"cpu_us": cpu_us, "store_us": store_us, "per_s": done / took_s}
        return best


# -- latencies -------------------------------------------------------------------------------------------------------


class _Planned(asyncio.Protocol):
    """One connection that sends at planned times and notes how long each answer took."""

    def __init__(self, took_s: list[float]) -> None:
        self._took_s = took_s
        self._planned: list[float] = []
        self._at = 0
        self._buffer = b""
        self.done = asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, request: bytes, planned_s: float) -> None:
        if self._transport.is_closing():
            raise SystemExit("The service ended a connection whose answers were not read: this machine is too busy.")
        self._planned.append(planned_s)
        self.done.clear()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        now_s = time.perf_counter()
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            at = self._buffer.find(b"content-length: ", 0, end)
            length = int(self._buffer[at + 16 : self._buffer.find(b"\r", at)])
            if len(self._buffer) < end + 4 + length:
                break
            self._buffer = self._buffer[end + 4 + length :]
            self._took_s.append(now_s - self._planned[self._at])
            self._at += 1
        if self._at == len(self._planned):
            self.done.set()


async def open_loop(port: int, make: Callable[[int], bytes], per_s: float, for_s: float) -> list[float]:
    """How long each answer took, from when its request was planned."""
    took_s: list[float] = []
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: _Planned(took_s), "127.0.0.1", port))[1] for _ in range(CONNECTIONS)
    ]
    total, began_s = int(per_s * for_s), time.perf_counter() + 0.1
    for number in range(total):
        planned_s = began_s + number / per_s
        wait_s = planned_s - time.perf_counter()
        if wait_s > 0.0002:
            await asyncio.sleep(wait_s)
        elif number % 16 == 0:
            await asyncio.sleep(0)
        clients[number % CONNECTIONS].send(make(number), planned_s)
    for client in clients:
        await asyncio.wait_for(client.done.wait(), 30)
        client._transport.close()
    assert len(took_s) == total
    return took_s


def percentiles(took_s: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(took_s, n=1000)
    return {"p50_ms": cuts[499] * 1e3, "p99_ms": cuts[989] * 1e3, "max_ms": max(took_s) * 1e3}


def best_latency(port: int, make: Callable[[int], bytes], per_s: float, for_s: float) -> dict[str, float]:
    """The least disturbed of some rounds."""
    rounds = [percentiles(uvloop.run(open_loop(port, make, per_s, for_s))) for _ in range(LATENCY_ROUNDS)]
    return min(rounds, key=lambda each: each["p99_ms"])


def frozen(valkey: Valkey, port: int) -> tuple[dict[str, float], dict[str, float]]:
    """How long checks take while Redis is stopped, and hellos between them, in the round that disturbed hellos least.

    Each round begins with a store that answers, so it has the checks that wait for the deadline.
    """
    rounds = []
    for _ in range(FROZEN_ROUNDS):
        for _ in range(200):
            if httpx.post(f"http://127.0.0.1:{port}/v1/check", json={"key": "1"}).json()["source"] == "store":
                break
            time.sleep(0.05)
        valkey.pause()
        try:
            rounds.append([percentiles(each) for each in uvloop.run(_both(port))])
        finally:
            valkey.resume()
    checks, hellos = min(rounds, key=lambda each: each[1]["max_ms"])
    return checks, hellos


async def _both(port: int) -> list[list[float]]:
    asked = (open_loop(port, make, FROZEN_PER_S, FROZEN_S) for make in (make_check, lambda _: HELLO))
    return list(await asyncio.gather(*asked))


def share_without_store(port: int) -> float:
    """How many of all decisions the policy made, because Redis did not answer within the deadline."""
    page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    rows = [line.rpartition(" ") for line in page.splitlines() if not line.startswith("#")]
    total = sum(float(value) for name, _, value in rows if name.startswith("frontrow_limits_decisions_total"))
    return sum(float(value) for name, _, value in rows if name.startswith("frontrow_limits_store_errors")) / total


# -- the run ---------------------------------------------------------------------------------------------------------


def measure(for_s: float) -> dict[str, Any]:
    told: dict[str, Any] = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "costs": {}, "latency": {}}
    request = messages.RateLimitRequest(domain="edge")
    request.descriptors.add().entries.add(key="remote_address", value="203.0.113.7")
    limit = f"/{messages.RATE_LIMIT_SERVICE}/ShouldRateLimit", request, messages.RateLimitResponse
    health = f"/{messages.HEALTH_SERVICE}/Check", messages.HealthCheckRequest(), messages.HealthCheckResponse
    with Valkey() as valkey:
        for name, store, store_pid in (("memory", "memory://", None), ("Redis", valkey.unix_url, valkey.pid)):
            with serve(store) as (pid, port):
                costs = told["costs"]
                costs[f"HTTP hello ({name})"] = http_cost(pid, port["http"], HELLO, CALLS, None)
                costs[f"HTTP check ({name})"] = http_cost(pid, port["http"], make_check, CALLS, store_pid)
                batched = http_cost(pid, port["http"], next_batch, CALLS // 40, store_pid)
                batched = {what: value / BATCH if what != "per_s" else value * BATCH for what, value in batched.items()}
                costs[f"HTTP batch of {BATCH}, per decision ({name})"] = batched
                costs[f"gRPC hello ({name})"] = asyncio.run(grpc_cost(pid, port["grpc"], None, *health))
                costs[f"gRPC ShouldRateLimit ({name})"] = asyncio.run(grpc_cost(pid, port["grpc"], store_pid, *limit))
                latency = told["latency"]
                latency[f"hello ({name})"] = best_latency(port["http"], lambda _: HELLO, SINGLE_PER_S / 2, for_s)
                latency[f"check ({name})"] = best_latency(port["http"], make_check, SINGLE_PER_S / 2, for_s)
                latency[f"batch ({name})"] = best_latency(port["http"], next_batch, BATCHED_PER_S / 2 / BATCH, for_s)
                if store_pid is not None:
                    told["share_decided_without_store"] = share_without_store(port["http"])
                    told["frozen"], told["frozen_hello"] = frozen(valkey, port["http"])
    return told


def show(told: dict[str, Any]) -> list[Target]:
    costs, latency = told["costs"], told["latency"]
    columns = ("service µs", "store µs", "/ hello", "per s and core", "measured/s")
    print(f"{'CPU per call':48}", *(f"{column:>14}" for column in columns))
    for name, row in costs.items():
        kind, store = name.split()[0], name.rpartition("(")[2]
        hello = costs[f"{kind} hello ({store}"]["cpu_us"]
        core = 1e6 / (row["cpu_us"] + row["store_us"])
        figures = f"{row['cpu_us']:14.1f} {row['store_us']:14.1f} {row['cpu_us'] / hello:14.2f}"
        print(f"{name:48} {figures} {core:14,.0f} {row['per_s']:14,.0f}")
    latencies = {**latency, "check, store frozen": told["frozen"], "hello beside it": told["frozen_hello"]}
    for name, row in latencies.items():
        print(f"{name:48} p50 {row['p50_ms']:7.2f} ms   p99 {row['p99_ms']:7.2f} ms   max {row['max_ms']:7.2f} ms")

    print(f"decided without Redis, because it was late: {told['share_decided_without_store']:.3%}")

    def on_two(name: str) -> float:
        return 2e6 / (costs[name]["cpu_us"] + costs[name]["store_us"])

    per_decision = f"HTTP batch of {BATCH}, per decision"
    return [
        *(Target(f"single HTTP calls per s on 2 cores, {name}", on_two(f"HTTP check ({name})"), SINGLE_PER_S)
          for name in ("memory", "Redis")),
        *(Target(f"single gRPC calls per s on 2 cores, {name}", on_two(f"gRPC ShouldRateLimit ({name})"), SINGLE_PER_S)
          for name in ("memory", "Redis")),
        *(Target(f"batched decisions per s on 2 cores, {name}", on_two(f"{per_decision} ({name})"), BATCHED_PER_S)
          for name in ("memory", "Redis")),
        *(Target(f"p99 of single calls at {SINGLE_PER_S // 2:,}/s in ms, {name}",
                 latency[f"check ({name})"]["p99_ms"], 2.0, more_is_better=False) for name in ("memory", "Redis")),
        *(Target(f"p99 of batches at {BATCHED_PER_S // 2:,} decisions/s in ms, {name}",
                 latency[f"batch ({name})"]["p99_ms"], 2.0, more_is_better=False) for name in ("memory", "Redis")),
        Target("slowest answer while the store is frozen in ms", told["frozen"]["max_ms"], 30.0, more_is_better=False),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=LATENCY_S, help="of each run that measures latencies")
    told = measure(parser.parse_args().seconds)
    report("limits_serve", told, show(told))


if __name__ == "__main__":
    main()
