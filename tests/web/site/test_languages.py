"""Every text in every language is there, with the same `{names}` in it; the language is the visitor's."""

import re
from io import BytesIO

import pytest
from babel.messages.pofile import read_po

from frontrow.web.site.languages import LANGUAGES, best_language, catalogues, words_of
from frontrow.web.site.organiser.form_fields import NEEDED, Reading
from frontrow.web.site.routes import Form
from tests.web.site.texts import WEB, all_plurals, all_texts, catalogue_of_texts

OTHERS = [language for language in LANGUAGES if language != "en"]
NAME = re.compile(r"\{\w+\}")


@pytest.mark.parametrize("language", OTHERS)
def test_no_text_is_missing(language: str) -> None:
    words = words_of(language)
    known = {*words._texts, *words._plurals}
    missing = {text: where for text, where in all_texts().items() if text not in known}
    assert not missing, f"{len(missing)} texts have no {language}"


def test_the_texts_are_found_at_all() -> None:
    found = all_texts()
    assert len(found) > 250
    assert found["Choose seats"].endswith(".html")
    assert "Someone was faster: these seats are taken." in found
    assert "{n} second left on your seats." in found
    assert all_plurals()["{n} ticket"] == "{n} tickets"


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_same_names_in_it(language: str) -> None:
    for text, translated in words_of(language)._texts.items():
        assert sorted(NAME.findall(text)) == sorted(NAME.findall(translated)), (language, text)


@pytest.mark.parametrize("language", OTHERS)
def test_every_plural_has_all_its_forms_with_the_same_names(language: str) -> None:
    words = words_of(language)
    assert set(words._plurals) == set(all_plurals())
    for text, forms in words._plurals.items():
        assert len(forms) == {"ja": 1, "ar": 6}.get(language, 2), (language, text)
        for form in forms:  # "one" and "two" may be words
            assert {*NAME.findall(form), "{n}"} == set(NAME.findall(text)), (language, form)


def test_a_count_takes_the_form_of_its_language() -> None:
    def tickets(language: str, n: int) -> str:
        return words_of(language).ngettext("{n} ticket", "{n} tickets", n)

    assert [tickets("en", n) for n in (0, 1, 2, 1200)] == ["0 tickets", "1 ticket", "2 tickets", "1,200 tickets"]
    assert [tickets("de", n) for n in (1, 2)] == ["1 Ticket", "2 Tickets"]
    assert [tickets("fr", n) for n in (0, 1, 2)] == ["0 billet", "1 billet", "2 billets"]
    assert tickets("ja", 1) == "チケット1枚"
    assert [tickets("ar", n) for n in (1, 2, 3, 11)] == ["تذكرة واحدة", "تذكرتان", "3 تذاكر", "11 تذكرة"]


@pytest.mark.parametrize("language", OTHERS)
def test_a_text_is_in_the_catalogue_of_the_pages_that_say_it(language: str) -> None:
    expected = catalogue_of_texts()
    for catalogue in catalogues(language):
        for message in read_po(BytesIO(catalogue.read_bytes())):
            if message.id:
                text = message.id if isinstance(message.id, str) else message.id[0]
                assert f"{expected[text]}.po" == catalogue.name, text


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_no_text_that_nobody_says(language: str) -> None:
    words = words_of(language)
    unused = {*words._texts, *words._plurals} - set(all_texts())
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
        ("", "DE-at", "de"),
    ],
)
def test_the_language_is_the_chosen_one_else_the_browsers(cookie: str, accepted: str, language: str) -> None:
    assert best_language(cookie, accepted) == language


def test_numbers_money_and_times_are_written_as_people_expect() -> None:
    at_us = 1_800_000_000_000_000
    assert words_of("en").money(129_50, "EUR") == "€129.50"
    assert words_of("en").money(90_00, "EUR") == "€90"
    assert words_of("en").money(53_594_70, "EUR") == "€53,594.70", "never one decimal"
    assert words_of("de").money(90_00, "EUR").replace("\xa0", " ") == "90 €"
    assert words_of("ja").money(1200, "JPY") in ("￥1,200", "¥1,200")
    assert words_of("en").number(12_345) == "12,345"
    assert "15" in words_of("ar").when(at_us, "Europe/Vienna")
    assert words_of("en").when(at_us, "Europe/Vienna").endswith("09:00")
    assert words_of("pt").money(1_234_50, "EUR").replace("\xa0", " ") == "1 234,50 €"  # as in Portugal
    assert words_of("ar").when(at_us, "Europe/Vienna").endswith("2027، 09:00\u2069")
    assert words_of("ja").when(at_us, "Europe/Vienna") == "2027年1月15日(金) 09:00"
    assert [words_of(one).day("2027-01-15") for one in ("en", "de", "pt")] == [
        "15 Jan 2027",
        "15.01.2027",
        "15/01/2027",
    ]
    assert [words_of(one).tag for one in LANGUAGES] == ["en-GB", "de", "fr", "es", "pt-PT", "ja", "ar"]
    assert words_of("ar").direction == "rtl"
    assert words_of("ja").direction == "ltr"


def test_a_time_without_a_place_says_that_it_is_in_utc() -> None:
    """Before: the audit, the team and the account showed UTC without saying so."""
    at_us = 1_800_000_000_000_000
    assert words_of("en").when(at_us) == "Fri, 15 Jan 2027, 08:00 UTC"
    assert words_of("en").when(at_us, short=True).endswith("08:00 UTC")
    assert "UTC" not in words_of("en").when(at_us, "UTC"), "a venue that is there"


@pytest.mark.parametrize(
    ("language", "zone", "ending"),
    [
        ("en", "Europe/Vienna", "09:00 CET"),
        ("de", "Europe/Vienna", "09:00 MEZ"),
        ("ja", "Europe/Vienna", "09:00 UTC+01"),
        ("en", "Asia/Kolkata", "13:30 UTC+05:30"),
        ("en", "UTC", "08:00 UTC"),
        ("en", "", "08:00 UTC"),
        ("ar", "Europe/Vienna", "09:00 UTC+01\u2069"),
    ],
)
def test_a_time_for_organisers_names_its_zone(language: str, zone: str, ending: str) -> None:
    assert words_of(language).zoned(1_800_000_000_000_000, zone).endswith(ending)
    assert words_of(language).zoned(1_800_000_000_000_000, zone, short=True).endswith(ending)


def test_a_number_out_of_range_is_told_the_range() -> None:
    reading = Reading(Form([("seats", "70000"), ("empty", "")]))
    reading.whole("seats", 1, 12_000)
    reading.whole("empty", 1, 5)
    assert words_of("en")(reading.errors["seats"]) == "Type a whole number from 1 to 12,000."
    assert words_of("de")(reading.errors["seats"]) == "Geben Sie eine ganze Zahl von 1 bis 12.000 ein."
    assert reading.errors["empty"] == NEEDED


def test_in_arabic_seat_names_and_dates_keep_their_order() -> None:
    arabic = words_of("ar")
    assert "\u2068A-1-12\u2069" in arabic("Remove {seat}", seat="A-1-12")
    assert arabic.when(1_800_000_000_000_000, "Europe/Vienna").startswith("\u2068")
    assert arabic.ngettext("{n} ticket", "{n} tickets", 3) == "3 تذاكر"  # a number alone needs nothing
    assert "\u2068" not in words_of("de")("Remove {seat}", seat="A-1-12")


def test_in_arabic_seats_in_a_table_keep_their_order() -> None:
    """ "105-B-5" alone in a right-to-left cell would read "5-B-105": names of seats stand in `bdi` or in a text."""
    name = re.compile(r"(.{5})\{\{ [\w.]*\b(?:seats?|chosen)(?:\[:\d\])?(?:\|join\(\", \"\))? \}\}")
    found = [
        (path.name, hit[0], hit[1])
        for path in (WEB / "templates").rglob("*.html")
        for hit in name.finditer(path.read_text())
    ]
    assert len(found) > 3
    assert [one for one in found if not one[2].endswith(("<bdi>", '="'))] == []


def test_values_are_put_in_and_unknown_texts_stay_as_they_are() -> None:
    assert words_of("de")("Pay {price}", price="90 €") == "90 € bezahlen"
    assert words_of("de")("nobody translated this") == "nobody translated this"
