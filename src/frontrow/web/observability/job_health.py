"""How background jobs fare, for every process that has some, and the three pages of `frontrow work`.

`job_families` are on every /metrics page, and `failed_jobs` on every /readyz. The event loop that runs the jobs answers
the pages of `frontrow work`, so a process that is stuck does not answer. It is alive as long as it answers, because a
restart repairs no store. It is ready unless a job fails again and again. A server that sells is ready all the same: one
broken job that runs everywhere must not take every server out of the sale.
"""

import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from frontrow.core.failures import FailureBook
from frontrow.shared.listening import listen_on
from frontrow.shared.version import VERSION
from frontrow.web.observability.plain_pages import METRICS_TYPE, Answer, serve_pages
from frontrow.web.observability.worker_metrics import Board, Family, Sample, text

if TYPE_CHECKING:  # a room that is served alone has these pages too, without the box office
    from frontrow.shared.jobs import JobRunner

FAILURES: Final = "frontrow_job_failures_total"
FAILING: Final = "frontrow_job_failing"


@contextlib.asynccontextmanager
async def serve_health(runner: "JobRunner", host: str, port: int) -> AsyncIterator[str]:
    """Answer at this address until the block ends; gives the address as a URL."""
    sock = listen_on(host, port, "work.health")
    async with serve_pages(sock, lambda path: health_answer(runner, path)):
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{sock.getsockname()[1]}"


def health_answer(runner: "JobRunner", path: str) -> Answer:
    """The page at this path."""
    failing = runner.book.failing()
    if path == "/healthz":
        return 200, "application/json", _json({"ok": True, "jobs": len(runner.jobs)})
    if path == "/readyz":
        told = {"ok": not failing, "failing": failing, "failures": runner.book.failed()}
        return 503 if failing else 200, "application/json", _json(told)
    if path == "/metrics":
        return 200, METRICS_TYPE, text([*job_families(runner.book), *work_families()])
    return 404, "text/plain", b""


def job_families(book: FailureBook) -> list[Family]:
    """How often each job failed, and which ones fail now. Prometheus calls the label `exported_job`."""
    failing = set(book.failing())
    failures, states = [], []
    for name, count in list(book.counts.items()):
        labels = (("job", name),)
        failures.append(Sample(FAILURES, labels, count))
        states.append(Sample(FAILING, labels, float(name in failing)))
    return [
        Family(FAILURES, "counter", "Failures of background jobs", "sum", failures),
        Family(FAILING, "gauge", "1 while a job fails again and again", "max", states),
    ]


def failed_jobs(board: Board, book: FailureBook) -> tuple[list[str], dict[str, int]]:
    """The jobs that fail now, and the failures of each since the start, in all workers of this server."""
    families = {family.name: family for family in board.joined(job_families(book))}
    failing = [sample.labels[0][1] for sample in families[FAILING].samples if sample.value]
    failures = {sample.labels[0][1]: int(sample.value) for sample in families[FAILURES].samples if sample.value}
    return failing, failures


def work_families() -> list[Family]:
    """What only `frontrow work` tells."""
    cpu = Sample("frontrow_work_cpu_seconds_total", (), time.process_time())
    version = Sample("frontrow_work_info", (("version", VERSION),), 1.0)
    return [
        Family("frontrow_work_cpu_seconds_total", "counter", "CPU of this process", "sum", [cpu]),
        Family("frontrow_work_info", "gauge", "The version that works", "max", [version]),
    ]


def _json(page: dict[str, object]) -> bytes:
    return json.dumps(page).encode()
