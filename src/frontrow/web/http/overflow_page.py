"""Small self-contained pages: the overflow page, and refusals that are given before any page is rendered.

One template with the waiting room's style inside. Each page is rendered once per language and kept as bytes, so that
sending it costs a lookup.
"""

from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

import jinja2

from frontrow.core.errors import FrontrowError
from frontrow.web.http.html import N_, page_head, policy_hash, safe
from frontrow.web.http.messages import HTML, EndpointRequest, EndpointResponse

# a browser was refused: the page to show, or None to answer with problem+json
ForPeople = Callable[[str, EndpointRequest, FrontrowError], EndpointResponse | None]
OVERFLOW: Final = {
    "title": N_("Very busy right now"),
    "heading": N_("More people than the waiting room can hold"),
    "note": N_("Please keep this page open"),
    "text": N_(
        "It retries automatically every minute. Nobody who already has a place has lost it, and trying more often does not help."  # noqa: E501
    ),
}
OVERFLOW_AGAIN_S: Final = 60
AGAIN: Final = (
    "const d=document.body.dataset;"
    'setTimeout(()=>"back"in d?history.back():location.reload(),d.again*(900+Math.random()*200))'
)


class Notices:
    """Renders each notice once per language."""

    def __init__(self, brand: str, theme: str = "") -> None:
        folder = files("frontrow.web") / "templates"
        self._css = f"{(folder / 'room.css').read_text('utf-8')}\n{theme}"
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
        self._page = environment.from_string((folder / "notice.html").read_text("utf-8"))
        self._brand, self._rendered = brand, dict[tuple[str, str], bytes]()
        own = f"style-src {policy_hash(self._css)}; script-src {policy_hash(AGAIN)}"
        policy = f"default-src 'none'; {own}; base-uri 'none'; frame-ancestors 'none'"
        self._head = HTML + page_head(policy)

    def answer(
        self,
        status: int,
        words: Any,
        texts: dict[str, str],
        *,
        refresh_s: int = 0,
        goes_back: bool = False,
        head: bytes = b"",
    ) -> EndpointResponse:
        """The notice with these texts; heading and sentence identify them. After `refresh_s` it loads again, or
        `goes_back` to the form that it answers."""
        key = (words.language, f"{texts['heading']} {texts['text']} {refresh_s}")
        body = self._rendered.get(key)
        if body is None:
            given = {"title": texts["heading"], "note": "", "home": ""} | texts
            translated = {name: words(text) if text else "" for name, text in given.items()}
            body = self._page.render(
                translated,
                words=words,
                css=safe(self._css),
                js=safe(AGAIN),
                brand=self._brand,
                refresh_s=refresh_s,
                goes_back=goes_back,
            ).encode()
            self._rendered[key] = body
        return EndpointResponse(status, self._head + head, body)
