"""`python -m tests.mutants.mutation_session TEST…`: try every change that mutmut can make, in this copy of the tree.

mutmut writes the changes. Left to itself it starts pytest anew for each of them, and nine tenths of the time go into
importing the tests. Here one session collects the tests, and each change is tried in a fork of it. What no fork noticed
is tried once more in a process of its own: modules compute some values when they are imported.

A change is given as much processor time as it needs, however busy the machine is: one that only ran out of time on the
clock would count as noticed.
"""

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol
from mutmut import __main__ as mutmut
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from tests.mutants.mutation_score import counted

NOTICED, SURVIVED, NO_TESTS, BROKEN = 1, 0, 33, 3
LEAST_CPU_S: Final = 30  # that a change is given, and ten times what its tests took
MOST_CLOCK_S: Final = 900  # a change that waits for ever uses no processor time
NOTICED_BY_PYTEST: Final = {1, 2}  # a test failed, or could not be imported
NODES: Final = "mutation-tests.json"


def written(jobs: int) -> list[Path]:
    """Let mutmut write its changes into the folder `mutants`, and go there. Returns the lists of changes."""
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    mutmut.copy_src_dir()
    mutmut.copy_also_copy_files()
    mutmut.setup_source_paths()
    mutmut.store_lines_covered_by_tests()
    mutmut.create_mutants(jobs)
    os.chdir("mutants")
    return sorted(path for path in Path("src").rglob("*.meta") if _changes(path))


def _changes(listed: Path) -> list[str]:
    """The changes of a module that count."""
    text, names = listed.with_suffix("").read_text("utf-8"), json.loads(listed.read_text("utf-8"))["exit_code_by_key"]
    module = listed.with_suffix("").as_posix().removeprefix("src/frontrow/")
    return [name for name, _, _ in counted(module, text, names)]


class Forks:
    """The session of pytest. It runs no test itself: forks do, so that nothing of one change is left for the next."""

    def __init__(self, lists: Sequence[Path], jobs: int, least_cpu_s: int) -> None:
        self._lists, self._jobs, self._least_cpu_s = lists, jobs, least_cpu_s
        self._running: dict[int, tuple[str, float]] = {}  # process -> change, when it is given up
        self.codes: dict[str, int] = {}
        self.tests: dict[str, list[str]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        by_name = {item.nodeid: item for item in session.items}
        if _ended(_forked(lambda: _look(session.items))) != SURVIVED:
            raise RuntimeError("the tests do not pass without a change")
        looked = json.loads(Path(NODES).read_text("utf-8"))
        for listed in self._lists:
            for change in _changes(listed):
                function = mutmut.mangled_name_from_mutant_name(change)
                self.tests[change] = looked["tests"].get(function, [])
                if not self.tests[change]:  # perhaps one calls it when it is imported
                    self.codes[change] = NO_TESTS
                    continue
                while len(self._running) >= self._jobs:
                    self._reap()
                items = [by_name[name] for name in self.tests[change]]
                cpu_s = self._least_cpu_s + math.ceil(10 * sum(looked["cpu_s"][one.nodeid] for one in items))
                process = _forked(lambda change=change, items=items: _try(change, items), cpu_s)  # type: ignore[misc]
                self._running[process] = change, time.monotonic() + MOST_CLOCK_S
        while self._running:
            self._reap()
        return True

    def _reap(self) -> None:
        """Wait until one of those that run has ended."""
        while True:
            for process, (change, ends_s) in list(self._running.items()):
                if time.monotonic() > ends_s:
                    os.kill(process, signal.SIGKILL)
                found, status = os.waitpid(process, os.WNOHANG)
                if found:
                    del self._running[process]
                    self.codes[change] = SURVIVED if status == 0 else NOTICED
                    return
            time.sleep(0.002)


def _forked(work: Callable[[], int], cpu_s: int = 0) -> int:
    """Begin this in a fork, and return its process. Its output goes nowhere."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = BROKEN
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        if cpu_s:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        code = work()
    finally:
        os._exit(code)


def _ended(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _look(items: Sequence[pytest.Item]) -> int:
    """Run all tests without a change: which functions each of them calls, and how much time it takes."""
    set_mutant_under_test("stats")
    tests: defaultdict[str, list[str]] = defaultdict(list)
    cpu_s: dict[str, float] = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        began_s = time.process_time()
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return NOTICED
        cpu_s[item.nodeid] = time.process_time() - began_s
        for function in state()._stats:
            tests[function].append(item.nodeid)
        state()._stats.clear()
    Path(NODES).write_text(json.dumps({"tests": tests, "cpu_s": cpu_s}), "utf-8")
    return SURVIVED


def _try(change: str, items: Sequence[pytest.Item]) -> int:
    """Whether one of these tests fails with the change."""
    set_mutant_under_test(change)
    for item, following in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return NOTICED
    return SURVIVED


def is_noticed_alone(change: str, tests: Sequence[str]) -> bool:
    """Whether the tests fail in a process that imports everything with the change."""
    environment = os.environ | {"MUTANT_UNDER_TEST": change, "PYTHONPATH": str(Path("src").absolute())}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--rootdir=.", f"-otimeout={MOST_CLOCK_S}", *tests]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=4 * MOST_CLOCK_S)
    if done.returncode not in NOTICED_BY_PYTEST | {0, 5}:
        raise RuntimeError(f"pytest could not try {change}:\n{done.stdout[-3_000:].decode(errors='replace')}")
    return done.returncode in NOTICED_BY_PYTEST


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.mutation_session", description=__doc__)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--least-cpu-s", type=int, default=LEAST_CPU_S)
    given = parser.parse_args()
    lists = written(given.jobs)
    forks = Forks(lists, given.jobs, given.least_cpu_s)
    code = pytest.main(["--rootdir=.", "--tb=native", "-q", *given.tests], plugins=[forks])
    if code or not forks.codes:
        return int(code) or 1
    for change, code in forks.codes.items():
        if code != NOTICED and is_noticed_alone(change, forks.tests[change] or given.tests):
            forks.codes[change] = NOTICED
    for listed in lists:
        whole = json.loads(listed.read_text("utf-8"))
        whole["exit_code_by_key"] = {change: forks.codes.get(change) for change in whole["exit_code_by_key"]}
        listed.write_text(json.dumps(whole), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
