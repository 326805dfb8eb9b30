"""`python -m tests.mutants.mutation_score`: change the pure rules in every small way and count what their tests notice.

mutmut makes the changes and runs the tests, in a copy of the tree where both distributions share one folder. A change
that nobody can tell from the original is listed with its reason in `pure_rules.py`. Ends with a table, with what
survived, and with an error if a module is below its floor.
"""

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutants.pure_rules import LEAST, SAME, SUBJECTS, Subject, is_a_rule
from tests.support.sources import ROOT

SURVIVED: Final = (0, 5, 33)  # mutmut's codes: its tests passed; there are none
LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "node_modules", "*.so", "*.c")
NUMBER: Final = re.compile(r"__mutmut_\d+$")


@dataclass(frozen=True, slots=True)
class Score:
    """How many changes of a module's rules were made and noticed, and those that were not."""

    module: str
    made: int
    survivors: tuple[str, ...]

    @property
    def percent(self) -> float:
        return 100 * (self.made - len(self.survivors)) / self.made if self.made else 0.0

    @property
    def is_enough(self) -> bool:
        return self.percent >= LEAST

    def __str__(self) -> str:
        return f"{self.module:52} {self.made - len(self.survivors):4} of {self.made:4}  {self.percent:5.1f} %"


def measured(folder: Path, subject: Subject, jobs: int) -> list[Score]:
    """Run mutmut over one subject in this copy of the tree."""
    shutil.rmtree(folder / "mutants", ignore_errors=True)
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/frontrow/{module}" for module in subject.modules],
        "do_not_mutate_patterns": [r"^\s*raise "],
        "pytest_add_cli_args_test_selection": list(subject.tests),
        "use_git_change_detection": False,
        "also_copy": ["docsite", "docs"],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (folder / "pyproject.toml").write_text("\n".join([text, "[tool.mutmut]", *lines, ""]), "utf-8")
    command = [sys.executable, "-m", "tests.mutants.mutation_session", "--jobs", str(jobs), *subject.tests]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    with tempfile.TemporaryFile() as said:
        ended = subprocess.run(command, cwd=folder, env=environment, stdout=said, stderr=said, check=False)
        said.seek(0)
        words = said.read().decode(errors="replace").replace("\r", "\n")
    if ended.returncode != 0:
        raise RuntimeError(f"mutmut could not measure {subject.name}:\n{words[-3_000:]}")
    return [score_of(folder / "mutants/src/frontrow", module) for module in subject.modules]


def score_of(source: Path, module: str) -> Score:
    """The score of a module, read from what mutmut left beside it."""
    codes = json.loads((source / f"{module}.meta").read_text("utf-8"))["exit_code_by_key"]
    text = (source / module).read_text("utf-8")
    made, survivors = 0, []
    for name, before, lines in counted(module, text, codes):
        made += 1
        if codes[name] in SURVIVED:
            survivors.append(f"{NUMBER.sub('', before.name)}\n    - {lines[0]}\n    + {lines[1]}")
        elif codes[name] is None:
            raise RuntimeError(f"mutmut did not try {name}")
    return Score(module, made, tuple(survivors))


def counted(module: str, text: str, names: Iterable[str]) -> Iterator[tuple[str, ast.FunctionDef, tuple[str, str]]]:
    """Those of the changes that count: they change a rule, and somebody could tell. With the lines before and after."""
    written = text.splitlines()
    for name, before, after in changes(text, names):
        lines = changed_lines(written, before, after)
        if is_a_rule(before, after) and (module, *lines) not in SAME:
            yield name, before, lines


def changes(text: str, names: Iterable[str]) -> Iterator[tuple[str, ast.FunctionDef, ast.FunctionDef]]:
    """Every change with the function before and after it."""
    functions = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    for name in names:
        short = name.rpartition(".")[2]
        yield name, functions[NUMBER.sub("__mutmut_orig", short)], functions[short]


def changed_lines(written: Sequence[str], before: ast.FunctionDef, after: ast.FunctionDef) -> tuple[str, str]:
    """What was there and what is there now, without the space around it."""
    one, two = (written[node.lineno : node.end_lineno] for node in (before, after))
    lines = [line for line in difflib.ndiff(one, two) if line[0] in "-+"]
    return tuple(" ".join(line[2:].strip() for line in lines if line[0] == sign) for sign in "-+")  # type: ignore[return-value]


def copied(folder: Path) -> None:
    """The tree as mutmut reads it: one `src` for both distributions, the tests, and the pages that tests draw."""
    shutil.copytree(ROOT / "src/frontrow", folder / "src/frontrow", ignore=LEFT_OUT)
    shutil.copytree(ROOT / "packages/limits/src/frontrow", folder / "src/frontrow", ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=LEFT_OUT)
    shutil.copytree(ROOT / "docsite", folder / "docsite", ignore=LEFT_OUT)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("img"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.mutation_score", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="a subject; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="how many at the same time")
    given = parser.parse_args()
    chosen = [one for one in SUBJECTS if not given.only or one.name in given.only]
    if not chosen:
        parser.error(f"the subjects are {', '.join(one.name for one in SUBJECTS)}")
    scores: list[Score] = []
    with tempfile.TemporaryDirectory(prefix="frontrow-mutation-") as folder:
        copied(Path(folder))
        for subject in chosen:
            scores += measured(Path(folder), subject, given.jobs)
            print(*scores[-len(subject.modules) :], sep="\n", flush=True)
    for score in scores:
        for survivor in score.survivors:
            print(f"\nsurvived in {score.module}: {survivor}")
    made, left = sum(one.made for one in scores), sum(len(one.survivors) for one in scores)
    print(f"\n{made - left} of {made} changes were noticed: {100 * (made - left) / made:.1f} %")
    return 0 if all(score.is_enough for score in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
