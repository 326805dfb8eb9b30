"""The three pages of `frontrow work`: /healthz, /readyz and /metrics, for probes and Prometheus.

The event loop that runs the jobs answers them, so a process that is stuck does not answer. It is alive as long as it
answers, because a restart repairs no store. It is ready unless a job fails again and again.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Final

from frontrow import __version__
from frontrow.boxoffice.jobs.background_jobs import JobRunner
from frontrow.core.errors import ConfigError
from frontrow.web.observability.worker_metrics import Family, Sample, text

REQUEST_WITHIN_S: Final = 5.0
LONGEST_REQUEST: Final = 16 * 1024
AT_ONCE: Final = 32
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REASONS: Final = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
Answer = tuple[int, str, bytes]  # status, content type, body


@contextlib.asynccontextmanager
async def serve_health(runner: JobRunner, host: str, port: int) -> AsyncIterator[str]:
    """Answer at this address until the block ends; gives the address as a URL."""
    open_now = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            if open_now <= AT_ONCE:
                async with asyncio.timeout(REQUEST_WITHIN_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_response(health_answer(runner, head)))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it went away, or never said what it wanted
        finally:
            open_now -= 1
            writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=LONGEST_REQUEST)
    except OSError as error:
        raise ConfigError(
            f"work.health: cannot listen on {host}:{port}: {error.strerror}", param="work.health"
        ) from None
    async with server:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.sockets[0].getsockname()[1]}"


def health_answer(runner: JobRunner, head: bytes) -> Answer:
    """The answer to a request with these headers."""
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return 405, "text/plain", b""
    failing = runner.failing()
    if path == b"/healthz":
        status, page = 200, _json({"ok": True, "jobs": len(runner.jobs)})
    elif path == b"/readyz":
        status, page = 503 if failing else 200, _json({"ok": not failing, "failing": failing})
    elif path == b"/metrics":
        return 200, METRICS_TYPE, text(job_families(runner)) if method == b"GET" else b""
    else:
        return 404, "text/plain", b""
    return status, "application/json", page if method == b"GET" else b""


def job_families(runner: JobRunner) -> list[Family]:
    """How often each job failed, and which ones fail now."""
    failing = set(runner.failing())
    failures, states = [], []
    for name in [job.name for job in runner.jobs]:
        labels = (("job_name", name),)  # `job` is a label of Prometheus itself
        failures.append(Sample("frontrow_job_failures_total", labels, runner.failures.get(name, 0)))
        states.append(Sample("frontrow_job_failing", labels, float(name in failing)))
    cpu = Sample("frontrow_work_cpu_seconds_total", (), time.process_time())
    version = Sample("frontrow_work_info", (("version", __version__),), 1.0)
    return [
        Family("frontrow_job_failures_total", "counter", "Failures of background jobs", "sum", failures),
        Family("frontrow_job_failing", "gauge", "1 while a job fails again and again", "max", states),
        Family("frontrow_work_cpu_seconds_total", "counter", "CPU of this process", "sum", [cpu]),
        Family("frontrow_work_info", "gauge", "The version that works", "max", [version]),
    ]


def _json(page: dict[str, object]) -> bytes:
    return json.dumps(page).encode()


def _response(answer: Answer) -> bytes:
    status, kind, body = answer
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body
