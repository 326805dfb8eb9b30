"""What this machine could not check, said in the last lines of the run.

No test is skipped. A few check less where a program is missing that no wheel brings. They say so by the fixture
`not_checked`, and the run ends with one line for each.
"""

from collections.abc import Callable

import pytest

SAID = "not checked on this machine"


@pytest.fixture
def not_checked(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Call it with what is not checked and why. The test goes on."""
    return lambda what: request.node.user_properties.append((SAID, what))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for several in terminalreporter.stats.values() for report in several]
    properties = [found for report in reports for found in getattr(report, "user_properties", ())]
    for what in sorted({str(value) for name, value in properties if name == SAID}):
        terminalreporter.write_line(f"NOT CHECKED ON THIS MACHINE: {what}", yellow=True)
