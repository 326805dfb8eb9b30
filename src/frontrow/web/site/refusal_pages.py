"""Refusals before any page is rendered, shown as pages: rate limited, overloaded, too late, unknown room.

A browser that wants HTML gets a small page in its language; programs get problem+json as ever.
"""

from typing import Final

from frontrow.core.errors import FrontrowError
from frontrow.shared.cookie_headers import read_cookie
from frontrow.web.http.cookies import LANGUAGE_COOKIES
from frontrow.web.http.messages import NO_STORE, EndpointRequest, EndpointResponse
from frontrow.web.http.notices import ForPeople, Notices
from frontrow.web.site.error_pages import HOME, LATER, texts_of
from frontrow.web.site.languages import Words, best_language, words_of

LEAST_AGAIN_S: Final = 5
MOST_AGAIN_S: Final = 300


def words_in(ask: EndpointRequest) -> Words:
    """The words of the visitor's language."""
    chosen = read_cookie((ask.header(b"cookie") or b"").decode("latin-1"), LANGUAGE_COOKIES)
    return words_of(best_language(chosen, accepted(ask)))


def accepted(ask: EndpointRequest) -> str:
    return (ask.header(b"accept-language") or b"")[:200].decode("latin-1")


def wants_page(method: str, ask: EndpointRequest) -> bool:
    """Whether a browser is about to show the answer to somebody."""
    return method in ("GET", "POST") and b"text/html" in (ask.header(b"accept") or b"")


def notices_for_people(notices: Notices) -> ForPeople:
    """The page for a refusal of the request middleware or the room; called before any handler runs."""

    def page(method: str, ask: EndpointRequest, error: FrontrowError) -> EndpointResponse | None:
        if not wants_page(method, ask):
            return None
        return problem_notice(notices, ask, error, is_form=method == "POST")

    return page


def problem_notice(notices: Notices, ask: EndpointRequest, error: FrontrowError, *, is_form: bool) -> EndpointResponse:
    """The page of an error. A temporary one reloads automatically; the answer to a form goes back to it instead."""
    status, words = error.http_status, words_in(ask)
    heading, sentence = texts_of(status, error.code, is_form=is_form)
    after_s = max(1, min(MOST_AGAIN_S, -int(-(error.retry_after_s or 0) // 1))) if error.retry_after_s else 0
    head = NO_STORE + (b"retry-after: %d\r\n" % after_s if after_s else b"")
    texts = {"heading": heading, "text": sentence, "home": HOME}
    # Spread the reloads, so that not everyone comes back in the same instant.
    refresh_s = max(LEAST_AGAIN_S, after_s) if status in LATER else 0
    return notices.answer(status, words, texts, refresh_s=refresh_s, goes_back=is_form, head=head)
