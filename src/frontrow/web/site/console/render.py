"""Turns a template of the console into a response: in the owner's language, with the policy of our pages."""

import gzip
from typing import Any, Final

from litestar import Response

from frontrow.settings.colours import theme_css
from frontrow.shared.cookie_headers import read_cookie
from frontrow.waitingroom.console.access import SignedInOwner
from frontrow.waitingroom.console.model.owners import RIGHTS, Right
from frontrow.web.http.access import Caller
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.site.assets import site_assets, theme_asset
from frontrow.web.site.console.console import Asked, console_of
from frontrow.web.site.languages import Words, best_language, words_of
from frontrow.web.site.render import MIN_GZIP_BYTES, PRIVATE, environment
from frontrow.web.site.security_headers import PLAIN

NOBODY: Final = Caller()


def words_for(request: Asked) -> Words:
    """The words of the language that was chosen, else of the browser's."""
    chosen = read_cookie(request.headers.get("cookie", ""), LANGUAGE_COOKIES)
    return words_of(best_language(chosen, request.headers.get("accept-language", "")))


def render(
    request: Asked,
    template: str,
    owner: SignedInOwner | None,
    *,
    status: int = 200,
    script: str = "",
    headers: dict[str, str] | None = None,
    **context: Any,
) -> Response[bytes]:
    """The page. `owner` is who is signed in."""
    console, words, assets = console_of(request), words_for(request), site_assets()
    style = theme_css(console.settings.colours)
    scripts = [script] if script else []
    text = (
        environment()
        .get_template(template)
        .render(
            {"problem": "", "done": request.query_params.get("done", "")} | context,
            _=words,
            words=words,
            caller=NOBODY,
            owner=owner,
            csrf=owner.csrf if owner is not None else "",
            rights=frozenset(one.value for one in _rights(owner)),
            path=request.url.path,
            here=request.url.path,
            brand=console.settings.brand,
            theme_url=theme_asset(style)[0] if style else "",
            house=None,
            modules=[module for one in scripts for module in assets.with_imports(one)],
            scripts=scripts,
            script_texts=words.chosen(frozenset().union(*(assets.texts(one) for one in scripts))),
            now_ms=console.room.clock() // 1000,
            as_of_us=0,
            visit=None,
        )
    )
    body = text.encode()
    found = PLAIN.headers_of(https=console.settings.secure) | {
        "cache-control": PRIVATE,
        "content-language": words.language,
        "vary": "accept-encoding, accept-language, cookie",
        **(headers or {}),
    }
    if len(body) >= MIN_GZIP_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 5, mtime=0)
        found["content-encoding"] = "gzip"
    return Response(body, status_code=status, headers=found, media_type="text/html")


def _rights(owner: SignedInOwner | None) -> frozenset[Right]:
    return RIGHTS[owner.owner.role] if owner is not None else frozenset()
