"""Runs the tests of planted bugs: in a copy of the tree, one bug at a time per copy, within a time limit.

All tests run first without any bug: what fails then proves nothing. The copies share one PostgreSQL and have a Redis
each, so that a run of pytest need not start its own.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import Queue
from typing import Final

from tests.mutants.mutant import Mutant
from tests.support.servers import Postgres, Valkey
from tests.support.sources import ROOT

TEST_WITHIN_S: Final = 60  # one test; a bug may make it wait forever
RUN_WITHIN_S: Final = 180  # all tests of one bug
FIRST_RUN_WITHIN_S: Final = 1_800
LEFT_OUT: Final = (".git", ".venv", "node_modules", "out", "build", "dist", ".mypy_cache", ".ruff_cache")
LINKED: Final = (".venv", "tests/node/node_modules")
ENDING: Final = re.compile(r"^(FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class Verdict(StrEnum):
    """What became of a planted bug."""

    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    TEST_FAILS_WITHOUT = "ITS TEST FAILS WITHOUT IT"
    BROKEN = "BROKEN"  # it cannot be imported, or its tests ran for too long


@dataclass(frozen=True, slots=True)
class Outcome:
    """A planted bug after its tests: which one caught it, and how long that took."""

    mutant: Mutant
    verdict: Verdict
    test: str = ""
    took_s: float = 0.0
    output: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of pytest ended. The code is None if it ran out of time."""

    code: int | None
    output: str

    @property
    def failed(self) -> list[str]:
        return [name for _, name in ENDING.findall(self.output)]


class Copy:
    """A copy of the tree, and the servers that its tests use."""

    def __init__(self, folder: Path, redis_url: str, postgres_url: str) -> None:
        self.folder = folder
        source = [
            str(folder / "src"),
            str(folder / "packages/limits/src"),
            str(folder / "packages/limits-service/src"),
            str(folder),
        ]
        self._environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(source),
            "FRONTROW_TEST_REDIS_URL": redis_url,
            "FRONTROW_TEST_POSTGRES_URL": postgres_url,
        }

    def run(self, tests: Sequence[str], within_s: float, *options: str, workers: int = 1) -> Ending:
        """Run these tests. What is left of their processes after the time limit is killed."""
        environment = dict(self._environment)
        if workers > 1:
            options = (*options, "-n", str(workers), "--dist", "loadgroup")
            del environment["FRONTROW_TEST_REDIS_URL"]  # tests empty it: every worker has its own
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", f"-otimeout={TEST_WITHIN_S}", *options]
        with tempfile.TemporaryFile() as said:
            running = subprocess.Popen(
                [*command, *tests], cwd=self.folder, env=environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code: int | None = running.wait(within_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
            said.seek(0)
            return Ending(code, said.read().decode(errors="replace"))

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The copy with this bug in it."""
        path = mutant.path(self.folder)
        text, was = path.read_text("utf-8"), path.stat()
        path.write_text(mutant.applied(text), "utf-8")
        os.utime(path, (mutant.stamp_s(),) * 2)
        try:
            yield
        finally:
            path.write_text(text, "utf-8")
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def judge(self, mutant: Mutant) -> Outcome:
        """Plant the bug and run its tests until one fails."""
        began_s = time.monotonic()
        with self.planted(mutant):
            ending = self.run(mutant.tests, RUN_WITHIN_S, "-x")
        return judged(mutant, ending, time.monotonic() - began_s)


def judged(mutant: Mutant, ending: Ending, took_s: float) -> Outcome:
    """What the end of its tests says about a bug."""
    if ending.code == 0:
        return Outcome(mutant, Verdict.SURVIVED, took_s=took_s)
    by_name = {test.partition("[")[0] for test in mutant.tests}
    for test in ending.failed:
        if ending.code == 1 and test.partition("[")[0] in by_name:
            return Outcome(mutant, Verdict.CAUGHT, test, took_s)
    return Outcome(mutant, Verdict.BROKEN, took_s=took_s, output=ending.output[-2_000:])


def failing_before(copy: Copy, mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Those of the tests that fail without any bug."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    ending = copy.run(tests, FIRST_RUN_WITHIN_S, workers=jobs)
    if ending.code in (0, 1):
        return ending.failed
    raise RuntimeError(f"the tests did not run without a planted bug:\n{ending.output[-4_000:]}")


def judge_all(mutants: Sequence[Mutant], jobs: int, tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Judge all of them in `jobs` copies; `tell` hears of each as it ends."""
    with contextlib.ExitStack() as stack:
        copies = make_copies(stack, jobs)
        before = {name.partition("[")[0] for name in failing_before(copies[0], mutants, jobs)}
        free: Queue[Copy] = Queue()
        for copy in copies:
            free.put(copy)

        def judge(mutant: Mutant) -> Outcome:
            if before.intersection(test.partition("[")[0] for test in mutant.tests):
                outcome = Outcome(mutant, Verdict.TEST_FAILS_WITHOUT)
            else:
                copy = free.get()
                try:
                    outcome = copy.judge(mutant)
                finally:
                    free.put(copy)
            tell(outcome)
            return outcome

        with ThreadPoolExecutor(jobs) as threads:
            return list(threads.map(judge, mutants))


def make_copies(stack: contextlib.ExitStack, jobs: int) -> list[Copy]:
    """Copies of the tree with their servers. Closing the stack removes all of it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frontrow-mutants-")))
    options = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_wal_size=128MB")
    postgres = stack.enter_context(Postgres(*options))
    copies = []
    for number in range(jobs):
        target = folder / str(number)
        shutil.copytree(ROOT, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        for name in LINKED:
            if (ROOT / name).exists():
                (target / name).symlink_to(ROOT / name)
        copies.append(Copy(target, stack.enter_context(Valkey()).url, postgres.url))
    return copies
