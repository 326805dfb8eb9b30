"""The tables of docs/translations.md hold: one word for one thing, one form of address, punctuation as readers expect.

The table of terms has an English word per row. Wherever an English text says that word, the translation says one of the
forms of the row. Texts that say it in another sense are named in OTHER_SENSE.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import frontrow.boxoffice.texts
from frontrow.web.site.languages import LANGUAGES, words_of
from tests.web.site.texts import all_plurals, all_texts

PAGE: Final = Path(__file__).parents[3] / "docs" / "translations.md"
MAILS: Final = Path(frontrow.boxoffice.texts.__file__).parent / "languages"
OTHERS: Final = [language for language in LANGUAGES if language != "en"]
PLACEHOLDER: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{\w+\}")
# English word -> the beginnings of texts that mean something else by it: these name columns of a table.
OTHER_SENSE: Final = dict.fromkeys(
    ("section", "row", "seat"), ("Columns of a table:", "The first line names the columns:")
)
# Texts that are the same in a language and in English: names, units, and words both languages have.
SAME: Final = {
    "": "Cloudflare Turnstile|hCaptcha|reCAPTCHA|Webhook|Webhooks|{n} ms|{n} min|{low}–{high} min",
    "de": "Code|Code {n}|Codes|Extras|Feeds|Line-up|Links|Live|Logo|Median|Name|Online|Organisation|Team|Text|Ticket"
    "|Tickets|Wallet",
    "fr": "Action|Code|Code {n}|Codes|Dates|Description|Distance|Exports|Invitation|Logo|Menu|Message|Messages|Net"
    "|Notes|Notification|Organisation|Page {n}|Section|Section {name}|Section {section}|Sections|Stock|Total|{n} date"
    "|{{ n }} minute|{{ n }} minutes",
    "es": "Error {code}|Extras|Feeds|Total|no",
    "pt": "Extras|Feeds|Item|Links|Menu|Online|Stock|Total",
}


@cache
def table(heading: str) -> list[list[str]]:
    """The rows of the table with that heading."""
    lines = PAGE.read_text("utf-8").splitlines()
    rows = lines[lines.index(heading) + 2 :]
    end = next((n for n, row in enumerate(rows) if not row.startswith("|")), len(rows))
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[:end]]


def mail_texts(language: str) -> Iterator[tuple[str, str]]:
    """Where a text of the mails stands, and the text."""

    def walk(where: str, value: object) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield where, value
        elif isinstance(value, dict | list):
            for name, part in value.items() if isinstance(value, dict) else enumerate(value):
                yield from walk(f"{where}.{name}", part)

    yield from walk("mails", json.loads((MAILS / f"{language}.json").read_text("utf-8")))


@cache
def texts_of(language: str) -> list[tuple[str, str]]:
    """Every English text of the pages and mails with its translation; a plural text once per form."""
    words, mails, plurals = words_of(language), dict(mail_texts(language)), all_plurals()
    pages = [(text, form) for text, many in plurals.items() for form in words._plurals.get(text, (text, many))]
    pages += [(text, words(text)) for text in all_texts() if text not in plurals]
    return pages + [(text, mails[where]) for where, text in mail_texts("en") if where in mails]


def plain(text: str) -> str:
    """The text without its placeholders."""
    return PLACEHOLDER.sub(" ", text)


@cache
def texts_that_say(word: str) -> frozenset[str]:
    """The English texts that have the word, or its plural, as a word of its own."""
    found = re.compile(rf"(?<![\w-]){re.escape(word)}(s|ed)?(?![\w-])", re.IGNORECASE)
    texts = {text for text, _ in texts_of("en") if found.search(plain(text))}
    return frozenset(text for text in texts if not text.startswith(OTHER_SENSE.get(word, ())))


@pytest.mark.parametrize("language", OTHERS)
def test_one_word_for_one_thing(language: str) -> None:
    heading = "| en | de | fr | es | pt | ja | ar |"
    column = [cell.strip() for cell in heading.strip("|").split("|")].index(language)
    wrong = []
    for row in table(heading):
        forms, texts = row[column].casefold().split(" / "), texts_that_say(row[0])
        wrong += [
            f"{row[0]}: {text!r} is {said!r}"
            for text, said in texts_of(language)
            if text in texts and not any(form in plain(said).casefold() for form in forms)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_are_not_used(language: str) -> None:
    (listed,) = (not_used for one, not_used in table("| language | not |") if one == language)
    edge = "" if language == "ja" else r"\b"
    words = "|".join(re.escape(word.strip()) for word in listed.split(","))
    found = re.compile(f"{edge}({words}){edge}", re.IGNORECASE)
    wrong = [(hit[0], said) for _, said in texts_of(language) if (hit := found.search(plain(said)))]
    assert not wrong


@pytest.mark.parametrize("language", OTHERS)
def test_no_english_is_left(language: str) -> None:
    same = {*SAME[""].split("|"), *SAME.get(language, "").split("|")}
    left = {said for text, said in texts_of(language) if said == text and re.search(r"[a-z]{2}", plain(said))} - same
    assert not left


@pytest.mark.parametrize(
    ("language", "wrong"),
    [
        ("de", r"[”«»]|\"|\d%"),
        ("fr", r"[^\u00a0][;?!»]|[^\u00a0\d]:(?!//)|«[^\u00a0]|\w'\w|\d ?%"),
        ("es", r"^[^¿]*\?|^[^¡]*!|“"),
        ("pt", r"“|\d%"),
        ("ja", r"[ぁ-んァ-ヶ一-龥] ?[,?!:;]|[ぁ-んァ-ヶ一-龥]\.(?!\w)|\(.*[ぁ-ん].*\)"),
        ("ar", r"[ء-ي][,;?]|اً|[٠-٩]"),
    ],
)
def test_punctuation_is_that_of_the_language(language: str, wrong: str) -> None:
    found = re.compile(wrong)
    texts = {said for _, said in texts_of(language) if found.search(said.replace("{% if place %}, ", ""))}
    assert not texts


@pytest.mark.parametrize("language", OTHERS)
def test_a_sentence_ends_where_the_english_one_ends(language: str) -> None:
    """A label has no full stop, a sentence has one; a question stays a question."""
    ends = {".": ".。", "?": "?？؟", ":": ":：", "…": "…"}
    wrong = [
        said
        for text, said in texts_of(language)
        if text
        and said
        and (kind := next((one for one in ends if text.endswith(one)), ""))
        and said[-1] not in ends[kind] + "}"
    ]
    assert not wrong
