"""The servers of the waiting room's tests, for the streams behind them."""

from tests.web.room.conftest import kind, server

__all__ = ["kind", "server"]
