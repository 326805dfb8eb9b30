"""The setting `FRONTROW_LIMITS`, and how to read Django's requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.request import RawPostDataException
from django.utils.module_loading import import_string

from frontrow.limits.config import load_config
from frontrow.limits.http.caller_identity import check_can_wait, user_name
from frontrow.limits.http.wsgi import ENVIRONS

SETTING = "FRONTROW_LIMITS"
REST_SETTING = "REST_FRAMEWORK"
AWAITS = "frontrow.limits.awaits"  # whether the limited view is async
_FUNCTIONS = ("exempt_if", "tier_of", "on_refused")  # options that may be named by their import path


def read_options(user: Callable[[HttpRequest], Any]) -> dict[str, Any]:
    """The options of the setting `FRONTROW_LIMITS`: those of every middleware, and `file` for a TOML file."""
    options = dict(getattr(settings, SETTING, {}))
    if "file" in options:
        options = {**load_config(options.pop("file")).middleware_options(), **options}
    for name in _FUNCTIONS:
        if isinstance(options.get(name), str):
            options[name] = import_string(options[name])
    check_can_wait("on_refused", options.get("on_refused"), can_wait=False)
    options["identify"] = {"user": user, **(options.get("identify") or {})}
    return options


def user(request: HttpRequest) -> str | None:
    """The signed-in user's id."""
    return user_name(getattr(request, "user", None))


def user_of_view(request: HttpRequest) -> Any:
    """The signed-in user's id. An async view must not ask the database directly, so it gets an awaitable."""
    return async_user(request) if request.META.get(AWAITS) else user(request)


async def async_user(request: HttpRequest) -> str | None:
    """The signed-in user's id, where the database must be awaited."""
    auser = getattr(request, "auser", None)
    return user_name(await auser() if auser is not None else getattr(request, "user", None))


def _body(request: HttpRequest, max_bytes: int) -> bytes | None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > max_bytes:
        return None
    try:
        body: bytes = request.body
    except RawPostDataException:  # somebody has read a multipart form before, like the check of its CSRF token
        return None
    return body


REQUESTS = ENVIRONS.inside(lambda request: request.META, user=lambda request: None, body=_body)
ASYNC_REQUESTS = replace(REQUESTS, can_wait=True)
