"""The error tree. Each error has a stable `code`, a message that says what to do, and its subject as attributes.

    FrontrowError
    ├── ConfigError            a setting is missing or out of range; nothing was started
    ├── InvalidInput           the caller sent something invalid; `param` names it
    ├── NotFound
    ├── Refused                the request is valid but cannot be granted (taken, sold out, not your turn)
    ├── Unauthorised           the caller is not signed in
    ├── Forbidden              the caller is not allowed to do this
    ├── Overloaded             a bound was reached; try again after `retry_after_s`
    └── Unavailable            a store or provider did not answer; try again after `retry_after_s`

Each system subclasses these and may set its own `code` and `http_status`. Bodies are RFC 9457 (`problem()`).
"""

from typing import Any, ClassVar


class FrontrowError(Exception):
    """The base of every error that Frontrow raises on purpose."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str, *, param: str | None = None, retry_after_s: float | None = None, **about: Any):
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s
        self.about = about

    def problem(self) -> dict[str, Any]:
        """The RFC 9457 body of this error."""
        body: dict[str, Any] = {
            "type": f"urn:frontrow:{self.code}",
            "title": type(self).title(),
            "status": self.http_status,
            "detail": self.message,
            "code": self.code,
        }
        if self.param is not None:
            body["param"] = self.param
        return body | self.about

    @classmethod
    def title(cls) -> str:
        return cls.code.replace("_", " ").capitalize()


class ConfigError(FrontrowError):
    code = "bad_configuration"


class InvalidInput(FrontrowError, ValueError):
    code = "invalid_input"
    http_status = 422


class NotFound(FrontrowError):
    code = "not_found"
    http_status = 404


class Refused(FrontrowError):
    code = "refused"
    http_status = 409


class Unauthorised(FrontrowError):
    code = "unauthorised"
    http_status = 401


class Forbidden(FrontrowError):
    code = "forbidden"
    http_status = 403


class Overloaded(FrontrowError):
    code = "overloaded"
    http_status = 503


class Unavailable(FrontrowError):
    code = "unavailable"
    http_status = 503
