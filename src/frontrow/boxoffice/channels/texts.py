"""The words of messages: one JSON file a language (texts/en.json), two layouts (message.txt, message.html).

A kind of message has a `subject`, `lines` and a `short` form for SMS and push; all are Jinja2 templates, HTML-escaped
where they become HTML. A language that lacks a kind falls back to English. To add a language, add its file.
"""

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup

FALLBACK: Final = "en"
_FOLDER: Final = "frontrow.boxoffice.channels"


class Words(msgspec.Struct, frozen=True):
    """One kind of message in one language."""

    subject: str
    lines: tuple[str, ...]
    short: str
    closing: str | None = None  # instead of the language's own


class Rendered(msgspec.Struct, frozen=True):
    subject: str
    text: str
    html: str
    short: str


class Language(msgspec.Struct, frozen=True):
    greeting: str
    closing: str
    kinds: dict[str, Words]


@functools.cache
def languages() -> Mapping[str, Language]:
    """Every language there is a file for."""
    folder = resources.files(_FOLDER) / "texts"
    return {
        file.name.removesuffix(".json"): msgspec.json.decode(file.read_bytes(), type=Language)
        for file in folder.iterdir()
        if file.name.endswith(".json")
    }


@functools.cache
def _environment(html: bool) -> jinja2.Environment:
    options = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return jinja2.Environment(autoescape=html, **options)  # type: ignore[arg-type]  # noqa: S701 - text is not HTML


@functools.cache
def _layout(name: str) -> jinja2.Template:
    text = (resources.files(_FOLDER) / "texts" / name).read_text("utf-8")
    return _environment(name.endswith(".html")).from_string(text)


@functools.lru_cache(1_000)
def _template(text: str, html: bool) -> jinja2.Template:
    return _environment(html).from_string(text)


def language_of(locale: str) -> str:
    """`de` for `de`, `de-AT`, `de_CH`; English for what we do not speak."""
    base = locale.replace("_", "-").partition("-")[0].lower()
    return base if base in languages() else FALLBACK


def render(kind: str, locale: str, about: Mapping[str, Any], *, html: bool = True) -> Rendered:
    """A message in the person's language; without `html` for channels that show none."""
    name = language_of(locale)
    if kind not in languages()[name].kinds:
        name = FALLBACK
    language = languages()[name]
    words = language.kinds[kind]

    def said(text: str, html: bool = False) -> str:
        return _template(text, html).render(about)

    subject = " ".join(said(words.subject).split())  # a line break in a name must not become a header
    closing = said(language.closing if words.closing is None else words.closing)
    greeting = said(language.greeting)
    frame = {"language": name, "subject": subject, "about": about, "greeting": greeting, "closing": closing}
    lines = [line for line in map(said, words.lines) if line.strip()]
    text = _layout("message.txt").render(frame | {"lines": lines})
    page = ""
    if html:
        marked = [Markup(said(line, html=True)) for line in words.lines]  # noqa: S704 - escaped by its template
        page = _layout("message.html").render(frame | {"lines": [line for line in marked if line.strip()]})
    return Rendered(subject, text, page, " ".join(said(words.short).split()))
