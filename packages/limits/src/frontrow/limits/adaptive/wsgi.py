"""An adaptive limit as plain WSGI middleware, the twin of `adaptive.asgi`.

    app.wsgi_app = AdaptiveLimitMiddleware(app.wsgi_app, paths={"critical": ["/pay/**"]})   # Flask

A request is in flight until the server has closed the body. While a request waits for a slot, it occupies its thread.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Unpack

from frontrow.limits.adaptive.limit import AdaptiveLimit, LimitOptions, Shed
from frontrow.limits.adaptive.load_meter import Ended
from frontrow.limits.adaptive.request_classes import EXEMPT, Classify, RequestClasses, judge_status, shed_response
from frontrow.limits.http.headers import as_text
from frontrow.limits.http.wsgi import App, Environ, StartResponse


class AdaptiveLimitMiddleware:
    """Limits the requests that a WSGI application serves at once. `classify` is given the environ."""

    def __init__(
        self,
        app: App,
        limit: AdaptiveLimit | None = None,
        *,
        paths: Mapping[str, Iterable[str]] | None = None,
        exempt: Iterable[str] = EXEMPT,
        classify: Classify | None = None,
        otherwise: str = "normal",
        **options: Unpack[LimitOptions],
    ) -> None:
        self.app = app
        self.limit = limit or AdaptiveLimit("wsgi", **options)
        self._classes = RequestClasses(self.limit, paths, exempt, classify, otherwise)
        self._refusal = shed_response(self.limit.retry_after_s)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        mount = _text(environ.get("SCRIPT_NAME", ""))
        rank = self._classes.rank_of(environ, mount + _text(environ.get("PATH_INFO", "")), mount)
        if rank is None:
            return self.app(environ, start_response)
        try:
            slot = self.limit.enter(rank)
        except Shed:
            status, fields, problem = self._refusal
            start_response(f"{status} {HTTPStatus(status).phrase}", as_text(fields))
            return [b"" if environ["REQUEST_METHOD"] == "HEAD" else problem]
        how = Ended.WELL

        def start_judged(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            nonlocal how
            how = judge_status(int(status[:3]))
            return start_response(status, headers, *error)

        try:
            body = self.app(environ, start_judged)
        except BaseException as error:
            self.limit.release(slot, self.limit.judge(error))
            raise
        return _Body(body, lambda: self.limit.release(slot, how))


class _Body:
    """The application's body. Tells when the server has closed it, or read it to its end."""

    def __init__(self, body: Iterable[bytes], ended: Any) -> None:
        self._body, self._ended = body, ended

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        finally:
            self._ended()

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._ended()


def _text(raw: str) -> str:
    """WSGI decodes paths as Latin-1, but they are UTF-8."""
    return raw if raw.isascii() else raw.encode("latin-1", "replace").decode("utf-8", "replace")
