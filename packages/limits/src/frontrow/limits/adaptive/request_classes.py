"""What ASGI and WSGI share: the class of a request by its path, the exempt paths, how a status counts, and the 503.

Patterns are those of `frontrow.limits.paths`: `/pay`, `/events/{event}/holds`, `/reports/**`.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from frontrow.core.errors import ConfigError
from frontrow.limits.adaptive.limit import AdaptiveLimit
from frontrow.limits.adaptive.load_meter import Ended
from frontrow.limits.given_lists import to_list
from frontrow.limits.http.headers import REDUCED_CAPACITY, Field, problem, whole
from frontrow.limits.paths import PathMatcher, readings

EXEMPT: Final = ("/healthz", "/readyz", "/livez", "/health", "/metrics")
MAX_PATHS: Final = 10_000  # remembered; what comes after is looked up each time
DROPPED: Final = frozenset({503, 504})
IGNORED: Final = frozenset({429})

Classify = Callable[[Any], str | None]


class RequestClasses:
    """Finds the class of a request: by `classify`, else by its path, else `otherwise`."""

    def __init__(
        self,
        limit: AdaptiveLimit,
        paths: Mapping[str, Iterable[str]] | None,
        exempt: Iterable[str],
        classify: Classify | None,
        otherwise: str,
    ) -> None:
        self._limit, self._classify = limit, classify
        self._otherwise = limit.rank_of(otherwise)
        self._ranks: dict[str, int | None] = {}  # of patterns; None: exempt
        for priority, patterns in (paths or {}).items():
            for pattern in to_list(f"paths[{priority!r}]", patterns):
                self._add(pattern, limit.rank_of(priority))
        for pattern in to_list("exempt", exempt):
            self._add(pattern, None)
        self._matcher = PathMatcher(self._ranks)
        self._known: dict[tuple[str, str], int | None] = {}

    def _add(self, pattern: str, rank: int | None) -> None:
        if self._ranks.setdefault(pattern, rank) != rank:
            raise ConfigError(f"paths: {pattern!r} has two classes; name it once", param="paths")

    def rank_of(self, request: Any, path: str, root_path: str) -> int | None:
        """The number of the request's class. None: it is exempt."""
        found = self._known.get((path, root_path), -1)
        if found == -1:
            found = self._look_up(path, root_path)
            if len(self._known) < MAX_PATHS:
                self._known[path, root_path] = found
        if found is None or self._classify is None:
            return found
        priority = self._classify(request)
        return found if priority is None else self._limit.rank_of(priority)

    def _look_up(self, path: str, root_path: str) -> int | None:
        """By the plainest reading of the path: a strange spelling must not make a request exempt or critical."""
        pattern = self._matcher.match(readings(path, root_path)[0])
        return self._otherwise if pattern is None else self._ranks[pattern]


def judge_status(status: int) -> Ended:
    """How a response counts for the limit: 503 and 504 are drops, other errors of the server say nothing."""
    if status in DROPPED:
        return Ended.DROPPED
    return Ended.IGNORED if status >= 500 or status in IGNORED else Ended.WELL


def shed_response(retry_after_s: float) -> tuple[int, list[Field], bytes]:
    """503 with Retry-After, made once."""
    wait_s = max(1, math.ceil(retry_after_s))
    detail = f"Too many requests are being served at once; try again in {wait_s} s."
    body = problem(503, REDUCED_CAPACITY, "Temporarily reduced capacity", detail)
    fields = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", whole(len(body))),
        (b"retry-after", whole(wait_s)),
    ]
    return 503, fields, body
