"""The code on docs/seats.md runs, and the page names what exists (B4, B13)."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.seats.model.best_seats import Grade
from frontrow.cli.event import app

PAGE = (Path(__file__).parents[2] / "docs" / "seats.md").read_text("utf-8")


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/seats.md", "exec"), {})
    assert capsys.readouterr().out.startswith("TOGETHER ['Stalls-A-")


def test_every_command_on_the_page_exists() -> None:
    named = set(re.findall(r"frontrow event plan (\w+)", PAGE))
    assert named == {"generate", "import", "export", "show"}
    for command in named:
        assert CliRunner().invoke(app, ["plan", command, "--help"]).exit_code == 0


def test_every_grade_is_explained() -> None:
    assert all(f"**{grade.name}**" in PAGE for grade in Grade)
