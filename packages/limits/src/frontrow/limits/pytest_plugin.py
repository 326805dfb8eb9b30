"""Fixtures for pytest, which finds them when frontrow-limits is installed.

    def test_the_sixth_code_is_refused(client, rate_limits):
        ...
        rate_limits.advance(60)

`rate_limits = off` in pytest's configuration switches the limits off in every test that does not ask for the fixture.
"""

import contextlib
from collections.abc import Iterator

import pytest

from frontrow.limits.testing import LimitsInTest, limits_in_memory, limits_off


def pytest_addoption(parser: pytest.Parser) -> None:
    """Pytest calls this: the setting `rate_limits`."""
    parser.addini(
        "rate_limits", "off: no rate limits in tests without the fixture rate_limits; on (default)", default="on"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Pytest calls this: a wrong setting is reported before any test runs."""
    given = config.getini("rate_limits")
    if given not in ("on", "off"):
        raise pytest.UsageError(f"rate_limits must be on or off, not {given!r}")
    if given == "off":
        config.pluginmanager.register(_OffByDefault())


class _OffByDefault:
    """A plugin that is there only if the setting says so."""

    @pytest.fixture(autouse=True)
    def _rate_limits_off_by_default(self, request: pytest.FixtureRequest) -> Iterator[None]:
        with contextlib.nullcontext() if "rate_limits" in request.fixturenames else limits_off():
            yield


@pytest.fixture
def rate_limits() -> Iterator[LimitsInTest]:
    """All rate limits, in memory on a clock that the test moves, with nothing counted."""
    with limits_in_memory() as limits:
        yield limits


@pytest.fixture
def rate_limits_off() -> Iterator[None]:
    """No rate limits in this test."""
    with limits_off():
        yield
