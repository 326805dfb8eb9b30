"""The shortest delay of an interval, as in CoDel: a queue that never empties shows in it, a burst does not."""


class StandingDelay:
    """Collects delays, of the event loop or of answers, and closes intervals."""

    __slots__ = ("_least", "_seen", "_shortest_s", "last_s")

    def __init__(self, least: int = 1) -> None:
        self._shortest_s: float | None = None
        self._least, self._seen = least, 0  # fewer delays than this prove nothing: one slow response is no queue
        self.last_s = 0.0

    def saw(self, delay_s: float) -> None:
        self._seen += 1
        if self._shortest_s is None or delay_s < self._shortest_s:
            self._shortest_s = delay_s

    def close(self) -> float:
        """End the interval; its shortest delay (0 when too little was seen)."""
        self.last_s = (self._shortest_s or 0.0) if self._seen >= self._least else 0.0
        self._shortest_s, self._seen = None, 0
        return self.last_s
