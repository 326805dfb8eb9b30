"""The texts of messages: one JSON file per language (texts/en.json …), two layouts (message.txt, message.html).

A kind of message has a `subject`, `lines`, an `action` (the text of its link) and a `short` form for SMS and push. All
are Jinja2 templates, HTML-escaped where they become HTML. Their values (money, times, seat names, counts) are formatted
for the language (`locale_formats`). docs/messages.md says how to add a kind. A test checks that every kind exists in
every language with the same placeholders and plural forms.
"""

import functools
import unicodedata
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup, escape

from frontrow.boxoffice.messaging.locale_formats import LANGUAGES, LocaleFormats, Moment, formats_of, language_of
from frontrow.boxoffice.model.receipts import Receipt
from frontrow.core.money import Money

_FOLDER: Final = "frontrow.boxoffice.messaging"
_RIGHT_TO_LEFT_LETTERS: Final = ("R", "AL")


class KindTexts(msgspec.Struct, frozen=True):
    """One kind of message in one language."""

    subject: str
    lines: tuple[str, ...]
    short: str
    action: str = ""  # the text of the link
    closing: str | None = None  # replaces the language's own


class RenderedMessage(msgspec.Struct, frozen=True):
    subject: str
    text: str
    html: str
    short: str


class Language(msgspec.Struct, frozen=True):
    """Everything one language's file holds. `words` are the labels of tickets and receipts."""

    greeting: str
    closing: str
    moment: str
    counts: dict[str, dict[str, str]]
    words: dict[str, str]
    kinds: dict[str, KindTexts]


@functools.cache
def languages() -> Mapping[str, Language]:
    """Every language, by its code."""
    folder = resources.files(_FOLDER) / "texts"
    return {
        name: msgspec.json.decode((folder / f"{name}.json").read_bytes(), type=Language, strict=True)
        for name in LANGUAGES
    }


def words_of(locale: str) -> Mapping[str, str]:
    """The labels of tickets and receipts in the person's language."""
    return languages()[language_of(locale)].words


@functools.cache
def _environment(html: bool) -> jinja2.Environment:
    options = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return jinja2.Environment(autoescape=html, **options)  # type: ignore[arg-type]  # noqa: S701 - text is not HTML


@functools.cache
def _layout(name: str) -> jinja2.Template:
    text = (resources.files(_FOLDER) / "texts" / name).read_text("utf-8")
    return _environment(name.endswith(".html")).from_string(text)


@functools.lru_cache(2_000)
def _template(text: str, html: bool) -> jinja2.Template:
    return _environment(html).from_string(text)


class MessageWriter:
    """Formats values and fills templates in one language, as plain text or as HTML."""

    def __init__(self, language: str, *, html: bool = False) -> None:
        self.formats: LocaleFormats = formats_of(language)
        self.language, self._texts, self._html = language, languages()[language], html

    def localised(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Every value as part of a sentence in this language."""
        return {name: self.value(value) for name, value in values.items()}

    def fill(self, text: str, localised: Mapping[str, Any]) -> str:
        """Fill the template with values that are localised already."""
        return _template(text, self._html).render(localised, count=self.count)

    def value(self, value: Any) -> Any:
        """Money, times and names as part of a sentence; anything else unchanged."""
        match value:
            case Money():
                return self.name(self.formats.money(value))
            case Moment():
                return self.moment(value)
            case str():
                return self.name(value)
            case tuple() if all(isinstance(one, str) for one in value):
                joined = ("\u060c " if self.formats.right_to_left else ", ").join(map(self.name, value))
                return Markup(joined) if self._html else joined  # noqa: S704 - each name is escaped
            case _:
                return value

    def name(self, text: str) -> str:
        """A value inside a sentence, isolated if its direction could differ from the sentence's."""
        mixed = self.formats.right_to_left or any(
            unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT_LETTERS for letter in text
        )
        if self._html:
            return Markup("<bdi>{}</bdi>").format(text) if mixed and text else escape(text)
        return f"\u2068{text}\u2069" if mixed and text else text

    def moment(self, moment: Moment) -> str:
        """Day, time, and the city of the time zone."""
        formats = self.formats
        parts = {
            "day": formats.day(moment),
            "time": formats.clock_time(moment),
            "city": formats.city(moment.time_zone),
        }
        return self.name(_template(self._texts.moment, False).render(parts))

    def count(self, name: str, number: int) -> str:
        """A count of something, in the plural form that the language needs."""
        forms = self._texts.counts[name]
        form = forms.get(self.formats.plural(number), forms["other"])
        text = _template(form, self._html).render(n=self.formats.number(number))
        return Markup(text) if self._html else text  # noqa: S704 - our own text and a number


def render(kind: str, locale: str, about: Mapping[str, Any], *, url: str = "", html: bool = True) -> RenderedMessage:
    """Render a message in the person's language with its link. `html` is only for mail."""
    name = language_of(locale)
    language = languages()[name]
    texts = language.kinds[kind]
    values = {"buyer": "", "tickets": [], "receipt": None, **about}
    plain = MessageWriter(name)
    localised = plain.localised(values)
    subject = _one_line(plain.fill(texts.subject, localised))  # a line break in a name must not become a header
    text = _body("message.txt", plain, language, texts, values, subject, url)
    page = _body("message.html", MessageWriter(name, html=True), language, texts, values, subject, url) if html else ""
    return RenderedMessage(subject, text, page, _one_line(plain.fill(texts.short, localised)))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _body(
    layout: str,
    writer: MessageWriter,
    language: Language,
    texts: KindTexts,
    values: Mapping[str, Any],
    subject: str,
    url: str,
) -> str:
    text_of: Callable[[str], str] = functools.partial(writer.fill, localised=writer.localised(values))
    mark = Markup if layout.endswith(".html") else str  # the values were escaped by their own templates
    frame = {
        "language": writer.language,
        "direction": writer.formats.direction,
        "subject": subject,
        "greeting": mark(text_of(language.greeting)),
        "lines": [mark(line) for line in map(text_of, texts.lines) if line.strip()],
        "action": texts.action,
        "url": url,
        "tickets": values["tickets"],
        "receipt": values["receipt"],
        "money": writer.formats.money,
        "percent": writer.formats.percent,
        "day": functools.partial(_day_of, writer, values["receipt"]),
        "words": language.words,
        "closing": mark(text_of(language.closing if texts.closing is None else texts.closing)),
    }
    return _layout(layout).render(frame)


def _day_of(writer: MessageWriter, receipt: Receipt, at_us: int) -> str:
    """The day of a payment in the venue's time zone."""
    return writer.formats.day(Moment(at_us, receipt.time_zone))
