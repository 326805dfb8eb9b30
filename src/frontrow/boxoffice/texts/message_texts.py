"""The texts of messages: one JSON file per language (languages/en.json …), two layouts (message.txt, message.html).

A kind of message has a `subject`, `lines`, an `action` (the text of its link) and a `short` form for SMS and push. All
are Jinja2 templates, HTML-escaped where they become HTML. Their values (money, times, seat names, counts) are formatted
for the language (`locale_formats`). docs/messages.md says how to add a kind. A test checks that every kind exists in
every language with the same placeholders and plural forms.
"""

import functools
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup, escape

from frontrow.boxoffice.checkout.model.receipts import Receipt
from frontrow.boxoffice.seats.model.seat_names import name_in
from frontrow.boxoffice.texts.greetings import greets_already
from frontrow.boxoffice.texts.locale_formats import LANGUAGES, LocaleFormats, Moment, formats_of, language_of
from frontrow.shared.money import Money

_FOLDER: Final = "frontrow.boxoffice.texts"
_RIGHT_TO_LEFT_LETTERS: Final = ("R", "AL")
_SEATS: Final = frozenset({"seats", "kept_seats"})  # values that are names of seats, written once in English
_CUT: Final = f"\x1e{secrets.token_hex(8)}\x1e"  # between texts that are filled as one; no name can contain it


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


class WrittenText(msgspec.Struct, frozen=True):
    """What somebody wrote themselves, to be put into the frame as it is. `html` is clean already."""

    text: str
    html: str


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
    folder = resources.files(_FOLDER) / "languages"
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
    made = jinja2.Environment(autoescape=html, **options)  # type: ignore[arg-type]  # noqa: S701 - text is not HTML
    made.globals["seat_names"] = seat_names
    return made


def seat_names(seats: Sequence[str], language: str) -> str:
    """The names of seats in a language, as a line of a receipt has them."""
    return "; ".join(name_in(seat, language) for seat in seats)


@functools.cache
def _layout(name: str) -> jinja2.Template:
    text = (resources.files(_FOLDER) / "languages" / name).read_text("utf-8")
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
        found = {name: self.value(value) for name, value in values.items()}
        for of in values.keys() & _SEATS:
            names = tuple(self.name(name_in(seat, self.language)) for seat in values[of])
            found[of] = Markup("; ").join(names) if self._html else "; ".join(names)
        return found

    def fill(self, texts: Sequence[str], localised: Mapping[str, Any]) -> list[str]:
        """Fill templates with values that are localised already. They are filled as one, because a template costs
        more to begin than to fill."""
        filled = _template(_CUT.join(texts), self._html).render(localised, count=self.count)
        return filled.split(_CUT)

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
        mixed = self.formats.right_to_left or (
            not text.isascii() and any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT_LETTERS for letter in text)
        )
        if self._html:
            return Markup("<bdi>{}</bdi>").format(text) if mixed and text else escape(text)
        return f"\u2068{text}\u2069" if mixed and text else text

    def moment(self, moment: Moment) -> str:
        """Day, time, and the city of the time zone."""
        return self.name(_moment_text(self.language, moment))

    def count(self, name: str, number: int) -> str:
        """A count of something, in the plural form that the language needs."""
        text = _count_text(self.language, name, number)
        return Markup(text) if self._html else text  # noqa: S704 - our own text and a number


@functools.lru_cache(2_000)
def _moment_text(language: str, moment: Moment) -> str:
    formats = formats_of(language)
    parts = {
        "day": formats.day(moment),
        "time": formats.clock_time(moment),
        "city": formats.city(moment.time_zone),
    }
    return _template(languages()[language].moment, False).render(parts)


@functools.lru_cache(2_000)
def _count_text(language: str, name: str, number: int) -> str:
    forms, formats = languages()[language].counts[name], formats_of(language)
    return _template(forms.get(formats.plural(number), forms["other"]), False).render(n=formats.number(number))


def render(
    kind: str,
    locale: str,
    about: Mapping[str, Any],
    *,
    url: str = "",
    html: bool = True,
    written: WrittenText | None = None,
) -> RenderedMessage:
    """Render a message in the person's language with its link. `html` is only for mail."""
    name = language_of(locale)
    language = languages()[name]
    texts = language.kinds[kind]
    nothing: dict[str, Any] = {"buyer": "", "tickets": [], "receipt": None, "brand": None, "wallets": [], "add_ons": ()}
    values = {**nothing, "back": "", "kept_seats": (), "kept_add_ons": (), **about}
    own = written or WrittenText("", "")
    closing = language.closing if texts.closing is None else texts.closing
    greeting = "" if greets_already(own.text) else language.greeting
    body = (greeting, *texts.lines, closing)
    plain = MessageWriter(name)
    subject, short, *text_parts = plain.fill((texts.subject, texts.short, *body), plain.localised(values))
    subject = _one_line(subject)  # a line break in a name must not become a header
    text = _body("message.txt", plain, language, texts, values, text_parts, subject, url, own.text)
    page = ""
    if html:
        writer = MessageWriter(name, html=True)
        parts = list(map(Markup, writer.fill(body, writer.localised(values))))  # their values are escaped
        page = _body("message.html", writer, language, texts, values, parts, subject, url, Markup(own.html))  # noqa: S704
    return RenderedMessage(subject, text, page, _one_line(short))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _body(
    layout: str,
    writer: MessageWriter,
    language: Language,
    texts: KindTexts,
    values: Mapping[str, Any],
    parts: Sequence[str],
    subject: str,
    url: str,
    written: str,
) -> str:
    greeting, *lines, closing = parts
    frame = {
        "language": writer.language,
        "direction": writer.formats.direction,
        "subject": subject,
        "greeting": greeting,
        "lines": [line for line in lines if line.strip()],
        "written": written,
        "action": texts.action,
        "url": url,
        "tickets": values["tickets"],
        "wallets": values["wallets"],
        "receipt": values["receipt"],
        "brand": values["brand"],
        "money": writer.formats.money,
        "percent": writer.formats.percent,
        "day": functools.partial(_day_of, writer, values["receipt"]),
        "words": language.words,
        "closing": closing,
    }
    return _layout(layout).render(frame)


def _day_of(writer: MessageWriter, receipt: Receipt, at_us: int) -> str:
    """The day of a payment in the venue's time zone."""
    return writer.formats.day(Moment(at_us, receipt.time_zone))
