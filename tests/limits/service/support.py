"""A service of `frontrow-limits serve` inside a test: both interfaces, over memory or Redis."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx

from frontrow.core.clock import Clock
from frontrow.limits_service import envoy_messages as messages
from frontrow.limits_service.server import Server, WorkerPlace
from frontrow.limits_service.service_config import ServiceConfig, load_service_config

RULES = """
[[limits.rules]]
name = "api"
quota = "3/day burst 3 token_bucket"
key = ["user"]
"""
COMMAND = [sys.executable, "-m", "frontrow.limits_service.command", "serve"]
METHOD = f"/{messages.RATE_LIMIT_SERVICE}/ShouldRateLimit"
Descriptor = list[tuple[str, str]]


def config_of(folder: Path, toml: str, store: str = "memory://", **settings: Any) -> ServiceConfig:
    """The configuration of a file with this text, on free ports."""
    file = folder / "limits.toml"
    head = "" if "[limits]" in toml else f'[limits]\nstore = "{store}"\ndeadline_ms = 1000\n'
    file.write_text(head + toml)
    ports = {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0"}
    return load_service_config(file, env={}, overrides=ports | settings)


class Running:
    """A running service and clients of it."""

    def __init__(self, server: Server, addresses: str, http: httpx.AsyncClient, channel: Any) -> None:
        self.server = server
        self.addresses = addresses
        self.http = http
        self.channel = channel

    @property
    def url(self) -> str:
        return str(self.http.base_url)

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.http.post(path, json=body, headers=headers)

    async def check(self, key: Any, **more: Any) -> httpx.Response:
        return await self.post("/v1/check", {"key": key, **more})

    async def envoy(self, domain: str, *descriptors: Descriptor | dict[str, Any], hits: int = 0, **call: Any) -> Any:
        """The response to a request of Envoy's."""
        request = messages.RateLimitRequest(domain=domain, hits_addend=hits)
        for given in descriptors:
            row: dict[str, Any] = given if isinstance(given, dict) else {"entries": given}
            added = request.descriptors.add()
            for key, value in row["entries"]:
                added.entries.add(key=key, value=value)
            if "limit" in row:
                added.limit.requests_per_unit, added.limit.unit = row["limit"]
            if "hits" in row:
                added.hits_addend.value = row["hits"]
        return await self.call(METHOD, request, messages.RateLimitResponse, **call)

    async def call(self, method: str, request: Any, answer: Any, **call: Any) -> Any:
        stub = self.channel.unary_unary(method, type(request).SerializeToString, answer.FromString)
        return await stub(request, timeout=20, **call)

    async def codes(self, domain: str, *descriptors: Descriptor | dict[str, Any], times: int, **more: Any) -> str:
        """The overall codes of several equal requests: `.` for OK, `X` for OVER_LIMIT."""
        told = [(await self.envoy(domain, *descriptors, **more)).overall_code for _ in range(times)]
        return "".join({messages.OK: ".", messages.OVER_LIMIT: "X"}[code] for code in told)


@contextlib.asynccontextmanager
async def running(config: ServiceConfig, clock: Clock | None = None, number: int = 1) -> AsyncIterator[Running]:
    """A service until the block ends."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = Server(config, WorkerPlace(number, b"secret"), clock=clock)
    task = asyncio.ensure_future(server.run(listening.set_result))
    await asyncio.wait([task, listening], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    addresses = listening.result()
    urls = dict(word.split("://") for word in addresses.split())
    channel = grpc.aio.insecure_channel(urls.get("grpc", "127.0.0.1:1"))
    async with httpx.AsyncClient(base_url=f"http://{urls.get('http', '127.0.0.1:1')}", timeout=20) as http:
        try:
            yield Running(server, addresses, http, channel)
        finally:
            await channel.close()
            server.stop()
            await task


@contextlib.contextmanager
def served(folder: Path, toml: str, *words: str, **variables: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """The command with a file: its process, and its addresses by scheme."""
    file = folder / "served.toml"
    file.write_text(toml)
    command = [*COMMAND, str(file), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *words]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    with (folder / "errors.log").open("ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=plain | variables)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on http://"), (folder / "errors.log").read_text()
        yield process, dict(word.split("://") for word in line.split()[2:])
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stdout.close()


def check(address: str, key: Any = "42", **more: Any) -> httpx.Response:
    """One check by a connection of its own."""
    return httpx.post(f"http://{address}/v1/check", json={"key": key, **more}, timeout=20)
