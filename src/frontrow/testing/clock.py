"""A clock for tests and simulations: it moves only when it is told to. It comes with the limiter."""

from frontrow.limits.testing import ManualClock as ManualClock
