"""What runs on which Python, and what is told about it: one line per Python, and what did not run in the last line."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

from tests.pythons.debian_roots import NotMade, clone_project, debian_root

DEMO: Final = "make demo FOR=20s"
TESTS: Final = "make test"
NO_BROWSER: Final = ("tests/browser", "tests/journeys", "tests/faults", "tests/web/room/test_browser.py")
SOME_TESTS: Final = "make test-twice LESS='{}'".format(" ".join(f"--ignore={name}" for name in NO_BROWSER))
TRACE: Final = "make simulate-trace"  # one hash of some histories of the simulation
TRACE_ARGUMENTS: Final = ("-m", "tests.simulation", "--trace", "--seeds", "10")
WITHIN_S: Final = 5_400  # one command
SOLD: Final = "nothing sold twice"
CLOSING: Final = re.compile(r"^(?=.*\d+ (?:passed|failed|error))[\d,]+ \w+.* in [\d.]+s\b.*$", re.MULTILINE)
TOLD_AT_THE_END: Final = re.compile(r"^(?:FLAKY|NOT CHECKED).*$", re.MULTILINE)
TRACED: Final = re.compile(r"^trace of \d+ seeds: \w+$", re.MULTILINE)
TAIL_LINES: Final = 60

Run = Callable[[str, TextIO], int]  # a command and its log -> its exit code


@dataclass(frozen=True)
class World:
    """A Python, where it comes from, and the commands that run there. No suite: one that is installed here."""

    python: str
    commands: tuple[str, ...]
    suite: str = ""


@dataclass(frozen=True)
class Outcome:
    """How it went in one world."""

    world: World
    version: str = ""
    told: tuple[str, ...] = ()  # one sentence per command that passed
    also: tuple[str, ...] = ()  # FLAKY and NOT CHECKED
    failed: str = ""
    not_run: str = ""

    def line(self) -> str:
        """The one line about this Python."""
        if self.not_run:
            return f"NOT RUN ON {self.world.python}: {self.not_run}"
        where = f"minimal Debian {self.world.suite}" if self.world.suite else "installed here"
        said = "; ".join((*self.told, *([f"FAILED: {self.failed}"] if self.failed else [])))
        return f"Python {self.version} ({where}): {said}"


ALL: Final = (
    World("3.12", (DEMO, TESTS, TRACE)),
    World("3.13", (DEMO, TESTS, TRACE), "trixie"),
    World("3.14", (DEMO, TESTS, TRACE), "sid"),
)
QUICK: Final = (World("3.13", (DEMO, SOME_TESTS, TRACE), "trixie"), World("3.14", (DEMO, TRACE), "sid"))


def closing_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What is printed in the end: a line per Python, then those that did not run."""
    ran = [outcome for outcome in outcomes if not outcome.not_run]
    lines = [line for outcome in ran for line in (*outcome.also, outcome.line())]
    return [*lines, *(outcome.line() for outcome in outcomes if outcome.not_run)]


def exit_code(outcomes: Sequence[Outcome], *, quick: bool) -> int:
    """A failure fails. A Debian that could not be made fails unless the run is quick: an archive may be away."""
    missing = [outcome for outcome in outcomes if outcome.not_run and outcome.world.suite]
    return int(any(outcome.failed for outcome in outcomes) or (bool(missing) and not quick))


def verdict(command: str, code: int, output: str) -> tuple[str, bool]:
    """A sentence about a command that ended, and whether it did what it should."""
    if command.startswith("make demo"):
        sold = next((line for line in reversed(output.splitlines()) if SOLD in line), "")
        return (f"{command}: {sold}", True) if code == 0 and sold else (f"{command} ended with {code}", False)
    if command == TRACE:
        traced = TRACED.findall(output)
        return (traced[-1], True) if code == 0 and traced else (f"{command} ended with {code}", False)
    closing = (CLOSING.findall(output) or ["no closing line"])[-1]
    name = command.partition(" LESS=")[0]
    return (f"{name}: {closing}", True) if code == 0 else (f"{name} ended with {code}: {closing}", False)


def run_commands(outcome: Outcome, run: Run, log_path: Path) -> Outcome:
    """Run the world's commands one after the other until one fails."""
    for command in outcome.world.commands:
        with log_path.open("a+") as log:
            log.write(f"\n$ {command}\n")
            log.flush()
            begun_at = log.tell()
            code = run(command, log)
            log.seek(begun_at)
            output = log.read()
        said, passed = verdict(command, code, output)
        if not passed:
            return replace(outcome, failed=said)
        also = tuple(f"{line} [Python {outcome.world.python}]" for line in TOLD_AT_THE_END.findall(output))
        outcome = replace(outcome, told=(*outcome.told, said), also=(*outcome.also, *also))
    return outcome


def run_world(world: World, project: Path, log_path: Path) -> Outcome:
    """Make the world, run its commands as a stranger would, and say how it went."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log_path.write_text(f"{world.python} at {time.strftime('%Y-%m-%d %H:%M:%S %Z')}\n")
    try:
        return _run_in_debian(world, project, log_path) if world.suite else _run_installed(world, project, log_path)
    except NotMade as error:
        return Outcome(world, not_run=str(error))


def _run_in_debian(world: World, project: Path, log_path: Path) -> Outcome:
    with contextlib.ExitStack() as opened:
        with log_path.open("a") as log:
            root = opened.enter_context(debian_root(world.suite, log))
        version = root.python_version()
        if not version.startswith(f"{world.python}."):
            raise NotMade(f"Debian {world.suite} has Python {version} now; take another suite (tests/pythons/runs.py)")
        root.welcome_stranger(project)
        return run_commands(Outcome(world, version), lambda command, log: root.run(command, WITHIN_S, log), log_path)


def _run_installed(world: World, project: Path, log_path: Path) -> Outcome:
    program = installed_python(world.python)
    if program is None:
        raise NotMade(f"there is no python{world.python} on this machine, and no Debian has it")
    version = _version(program) or ""
    with tempfile.TemporaryDirectory(prefix=f"frontrow-{world.python}-") as kept:
        Path(kept).chmod(0o755)  # PgBouncer runs as another user, and must be found
        clone = Path(kept) / "frontrow"
        clone_project(project, clone)

        def run(command: str, log: TextIO) -> int:
            words = ["timeout", "--kill-after=30", str(WITHIN_S), *command.split(), f"PYTHON={program}"]
            return subprocess.run(words, cwd=clone, stdout=log, stderr=log, check=False).returncode

        return run_commands(Outcome(world, version), run, log_path)


def installed_python(python: str) -> str | None:
    """The program of this Python: on the path, or among pyenv's."""
    candidates = [shutil.which(f"python{python}")]
    if pyenv := shutil.which("pyenv"):
        found = subprocess.run([pyenv, "prefix", python], capture_output=True, text=True, timeout=60, check=False)
        candidates.append(f"{found.stdout.strip()}/bin/python{python}" if found.returncode == 0 else None)
    for one in candidates:
        if one and (_version(one) or "").startswith(f"{python}."):
            return one
    return None


def _version(program: str) -> str | None:
    asked = [program, "-c", "import platform; print(platform.python_version())"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    return told.stdout.strip() if told.returncode == 0 else None


def own_trace(project: Path) -> str:
    """What this checkout's own Python says to `TRACE`. Empty: it is not set up."""
    program = project / ".venv" / "bin" / "python"
    if not program.exists():
        return ""
    told = subprocess.run([program, *TRACE_ARGUMENTS], cwd=project, capture_output=True, text=True, check=False)
    return next(iter(TRACED.findall(told.stdout)), f"it ended with {told.returncode}")


def compare_traces(outcomes: Sequence[Outcome], own: str) -> list[Outcome]:
    """The outcomes; those that have another trace than this Python, or than the first of them, failed."""
    traces = [one for outcome in outcomes for one in outcome.told if TRACED.fullmatch(one)]
    wanted = own or next(iter(traces), "")
    return [
        replace(outcome, failed=f"another trace than elsewhere ({wanted})")
        if any(TRACED.fullmatch(one) and one != wanted for one in outcome.told) and not outcome.failed
        else outcome
        for outcome in outcomes
    ]


def changed_files(project: Path) -> list[str]:
    told = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True, check=False)
    return told.stdout.splitlines()


def run_all(worlds: Sequence[World], project: Path, *, quick: bool) -> int:
    """Run every world, print how it went, and return the exit code."""
    outcomes = []
    if changed_files(project):
        print("What is not committed is not tested: a stranger clones the last commit.", flush=True)
    for world in worlds:
        log_path = project / "bench" / "out" / f"python-{world.python}.log"
        print(f"Python {world.python}: running, log in {log_path} …", flush=True)
        outcomes.append(outcome := run_world(world, project, log_path))
        if outcome.failed:
            print(*log_path.read_text(errors="replace").splitlines()[-TAIL_LINES:], sep="\n")
        print(outcome.line(), flush=True)
    outcomes = compare_traces(outcomes, own_trace(project))
    lines = closing_lines(outcomes)
    print("", *lines, sep="\n", flush=True)
    if told := os.environ.get("CLOSING_LINES_FILE"):
        with Path(told).open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
    return exit_code(outcomes, quick=quick)
