"""The three pages of `frontrow work`: /healthz, /readyz and /metrics, for probes and Prometheus.

The event loop that runs the jobs answers them, so a process that is stuck does not answer. It is alive as long as it
answers, because a restart repairs no store. It is ready unless a job fails again and again.
"""

import contextlib
import json
import time
from collections.abc import AsyncIterator

from frontrow import __version__
from frontrow.boxoffice.jobs.background_jobs import JobRunner
from frontrow.core.listening import listen_on
from frontrow.web.observability.plain_pages import METRICS_TYPE, Answer, serve_pages
from frontrow.web.observability.worker_metrics import Family, Sample, text


@contextlib.asynccontextmanager
async def serve_health(runner: JobRunner, host: str, port: int) -> AsyncIterator[str]:
    """Answer at this address until the block ends; gives the address as a URL."""
    sock = listen_on(host, port, "work.health")
    async with serve_pages(sock, lambda path: health_answer(runner, path)):
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{sock.getsockname()[1]}"


def health_answer(runner: JobRunner, path: str) -> Answer:
    """The page at this path."""
    failing = runner.failing()
    if path == "/healthz":
        return 200, "application/json", _json({"ok": True, "jobs": len(runner.jobs)})
    if path == "/readyz":
        return 503 if failing else 200, "application/json", _json({"ok": not failing, "failing": failing})
    if path == "/metrics":
        return 200, METRICS_TYPE, text(job_families(runner))
    return 404, "text/plain", b""


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
