"""A pytest plugin: the ids of failed tests go into the file that `FAILED_TESTS_FILE` names, one per line."""

import os
from pathlib import Path

import pytest

_failed: dict[str, None] = {}  # in the order in which they failed


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # a worker's reports come to the one that started it
        Path(os.environ["FAILED_TESTS_FILE"]).write_text("".join(f"{one}\n" for one in _failed))
