"""Every text in every language is there, with the same `{names}` in it; the language is the visitor's."""

import re

import pytest

from frontrow.web.site.languages import LANGUAGES, best_language, catalogues, words_of
from tests.web.site.texts import all_texts

OTHERS = [language for language in LANGUAGES if language != "en"]
NAME = re.compile(r"\{\w+\}")


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_missing(language: str) -> None:
    known = words_of(language)._texts
    missing = {text: where for text, where in all_texts().items() if text not in known}
    assert not missing, f"{len(missing)} texts have no {language}"


def test_the_texts_are_found_at_all() -> None:
    found = all_texts()
    assert len(found) > 250
    assert found["Choose seats"].endswith(".html")
    assert "Somebody was faster: these seats are taken." in found
    assert "{n} seconds left on your seats." in found


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_same_names_in_it(language: str) -> None:
    for text, translated in words_of(language)._texts.items():
        assert sorted(NAME.findall(text)) == sorted(NAME.findall(translated)), (language, text)


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_no_text_that_nobody_says(language: str) -> None:
    unused = set(words_of(language)._texts) - set(all_texts())
    assert not unused, [one.name for one in catalogues(language)]


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("", "", "en"),
        ("fr", "de", "fr"),
        ("xx", "de-AT,de;q=0.9,en;q=0.5", "de"),
        ("", "nl, pt-BR;q=0.8, es;q=0.9", "es"),
        ("", "ja;q=0, ar;q=0.1", "ar"),
        ("", "*", "en"),
        ("", "en;q=zero, de", "de"),
    ],
)
def test_the_language_is_the_chosen_one_else_the_browsers(cookie: str, accepted: str, language: str) -> None:
    assert best_language(cookie, accepted) == language


def test_numbers_money_and_times_are_written_as_people_expect() -> None:
    at_us = 1_800_000_000_000_000
    assert words_of("en").money(129_50, "EUR") == "€129.50"
    assert words_of("en").money(90_00, "EUR") == "€90"
    assert words_of("de").money(90_00, "EUR").replace("\xa0", " ") == "90 €"
    assert words_of("ja").money(1200, "JPY") in ("￥1,200", "¥1,200")
    assert words_of("en").number(12_345) == "12,345"
    assert "15" in words_of("ar").when(at_us, "Europe/Vienna")
    assert words_of("en").when(at_us, "Europe/Vienna").endswith("09:00")
    assert words_of("ar").direction == "rtl"
    assert words_of("ja").direction == "ltr"


def test_values_are_put_in_and_unknown_texts_stay_as_they_are() -> None:
    assert words_of("de")("Pay {price}", price="90 €") == "90 € bezahlen"
    assert words_of("de")("nobody translated this") == "nobody translated this"
