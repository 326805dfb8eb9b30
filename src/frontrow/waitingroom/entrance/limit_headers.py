"""The header fields that say how much of the limits is left: `RateLimit`, `RateLimit-Policy` and `X-RateLimit-…`.

A request can be counted by several limits. Its response names the tightest: the one that refused it, or else the one
with the least left. Many requests get the same lines, so the lines are cached.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil

from frontrow.core.clock import US_PER_S, Clock
from frontrow.limits import Decision, Quota
from frontrow.limits.http.headers import QuotaPolicy

MAX_LINES = 4096


class LimitHeaders:
    """Writes the fields about the tightest of the decisions about one request."""

    def __init__(self, quotas: Mapping[str, Quota], *, with_x_fields: bool, clock: Clock | None) -> None:
        """`quotas` by their names in the headers. `with_x_fields`: write `X-RateLimit-…` beside the IETF fields."""
        policies = [QuotaPolicy.of(name, quota) for name, quota in quotas.items()]
        shown = ", ".join(f'"{policy.rule}";q={policy.limit};w={policy.window_s}' for policy in policies)
        self._policy = f"ratelimit-policy: {shown}\r\n".encode()
        self._starts = {name: f'ratelimit: "{name}";r='.encode() for name in quotas}
        self._with_x_fields = with_x_fields
        self._wall_s: Callable[[], float] = time.time if clock is None else lambda: clock() / US_PER_S
        self._lines: dict[tuple[str, int, int, int], bytes] = {}
        self._reset_line = (0, b"")  # the last second written and its line: requests of one second share it

    def lines(self, decisions: Sequence[Decision]) -> bytes:
        """The lines of a response's head."""
        _, rule, limit, left, reset_us, retry_us, _, _ = _tightest(decisions)
        until_s = -(-(retry_us or reset_us) // US_PER_S)
        lines = self._lines.get((rule, limit, left, until_s))
        if lines is None:
            if len(self._lines) >= MAX_LINES:
                self._lines.clear()
            lines = self._lines[rule, limit, left, until_s] = self._make_lines(rule, limit, left, until_s)
        if not self._with_x_fields:
            return lines
        reset_s = ceil(self._wall_s() + reset_us / US_PER_S)
        written_s, line = self._reset_line
        if reset_s != written_s:
            line = b"x-ratelimit-reset: %d\r\n" % reset_s
            self._reset_line = (reset_s, line)
        return lines + line

    def fields(self, decisions: Sequence[Decision]) -> list[tuple[bytes, bytes]]:
        """The same as names and values."""
        pairs = [line.split(b": ", 1) for line in self.lines(decisions).split(b"\r\n") if line]
        return [(name, value) for name, value in pairs]

    def _make_lines(self, rule: str, limit: int, left: int, until_s: int) -> bytes:
        start, policy = self._starts.get(rule), self._policy
        if start is None:  # a rule of `[limits]`, which `quotas` does not have
            start = f'ratelimit: "{rule}";r='.encode()
            policy = f'{policy[:-2].decode()}, "{rule}";q={limit}\r\n'.encode()
        lines = b"%b%d;t=%d\r\n%b" % (start, left, until_s, policy)
        if self._with_x_fields:
            lines += b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\n" % (limit, left)
        return lines


def _tightest(decisions: Sequence[Decision]) -> Decision:
    """The refusal, or the decision with the least left. A rule that was just used up has as little as a refusal."""
    tightest = decisions[0]
    for decision in decisions:
        if decision[3] < tightest[3] or decision[0] < tightest[0]:  # a refusal is the last
            tightest = decision
    return tightest
