"""The doors of the waiting room's tests, for the streams behind them."""

from tests.web.room.conftest import door, kind

__all__ = ["door", "kind"]
