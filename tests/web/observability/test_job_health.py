"""The pages of `frontrow work`: probes see whether it lives and whether a job keeps failing; Prometheus reads both."""

import asyncio
import socket

import httpx
import pytest

from frontrow.core.errors import ConfigError
from frontrow.settings.platform import read_settings
from frontrow.settings.work import health_address
from frontrow.shared.jobs import Job, JobRunner
from frontrow.web.observability import plain_pages
from frontrow.web.observability.job_health import serve_health
from frontrow.web.observability.plain_pages import LONGEST_REQUEST, serve_pages
from tests.support.eventually import eventually
from tests.support.metrics_page import total


async def test_probes_and_prometheus_see_the_jobs():
    broken = asyncio.Event()

    async def relay() -> None:
        await broken.wait()
        raise RuntimeError("the bus is away")

    runner = JobRunner([Job("relay", relay), Job("sweeper", asyncio.Event().wait)], first_pause_s=0.001)
    running = asyncio.create_task(runner.run())
    async with serve_health(runner, "127.0.0.1", 0) as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        assert (await client.get("/healthz")).json() == {"ok": True, "jobs": 2}
        assert (await client.get("/readyz")).json() == {"ok": True, "failing": [], "failures": {}}
        assert (await client.head("/readyz")).content == b""
        for path in ("/healthz", "/readyz", "/metrics", "/"):
            assert (await client.get(path)).headers["x-content-type-options"] == "nosniff", path
        assert (await client.get("/")).status_code == 404
        assert (await client.post("/healthz")).status_code == 405
        broken.set()
        await eventually(lambda: runner.book.counts.get("relay", 0) > 1)
        answer = await client.get("/readyz?why")
        assert (answer.status_code, answer.json()["failing"]) == (503, ["relay"])
        assert answer.json()["failures"]["relay"] > 1
        assert (await client.get("/healthz")).status_code == 200, "a restart does not bring the bus back"
        page = (await client.get("/metrics")).text
        assert total(page, "frontrow_job_failures_total", job="relay") >= 2
        assert total(page, "frontrow_job_failures_total", job="sweeper") == 0
        assert total(page, "frontrow_job_failing", job="relay") == 1
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(b"GET /" + b"x" * (LONGEST_REQUEST + 1))
        assert await reader.read() == b"", "rubbish is hung up on"
        writer.close()
        assert (await client.get("/healthz")).status_code == 200
    runner.stop()
    assert await running


async def test_who_does_not_read_the_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(plain_pages, "REQUEST_WITHIN_S", 0.05)
    body = b"x" * 30_000_000  # more than the system keeps for both ends
    listening, client, loop = socket.create_server(("127.0.0.1", 0)), socket.socket(), asyncio.get_running_loop()
    client.setblocking(False)
    try:
        async with serve_pages(listening, lambda path: (200, "text/plain", body)):
            before = asyncio.all_tasks()
            await loop.sock_connect(client, listening.getsockname())
            await loop.sock_sendall(client, b"GET /metrics HTTP/1.1\r\n\r\n")
            await eventually(lambda: asyncio.all_tasks() - before)
            await eventually(lambda: not asyncio.all_tasks() - before)  # its time is over
            got = 0
            while piece := await loop.sock_recv(client, 1_000_000):
                got += len(piece)
        assert 0 < got < len(body)
    finally:
        client.close()


@pytest.mark.parametrize("text", ["8001", "here:", "here:port", "here:70000"])
def test_an_address_that_is_none_stops_the_start(text):
    with pytest.raises(ConfigError, match="work.health is"):
        health_address(text)
    with pytest.raises(ConfigError, match="127.0.0.1:8001"):
        read_settings(None, {"FRONTROW_WORK_HEALTH": text, "FRONTROW_SERVER_DEMO": "true"})


async def test_an_address_that_is_taken_is_said_so():
    runner = JobRunner([])
    async with serve_health(runner, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serve_health(runner, "127.0.0.1", port):
                pass
    assert health_address("[::1]:0") == ("::1", 0)
