"""The texts of messages in seven languages: complete, with the same placeholders, plurals and the reader's formats."""

import json
import re

import jinja2
import jinja2.meta
import pytest

from frontrow.boxoffice.messages.buyer_message_mail import KIND as BUYER_MESSAGE
from frontrow.boxoffice.messages.notifications import EVENT_CANCELLED, KIND_OF_FACT
from frontrow.boxoffice.organiser.report_mails import REPORT_MAIL_KINDS
from frontrow.boxoffice.seats.model.seat_names import seat_text
from frontrow.boxoffice.texts.greetings import greets_already
from frontrow.boxoffice.texts.locale_formats import LANGUAGES, formats_of, language_of
from frontrow.boxoffice.texts.message_texts import KindTexts, MessageWriter, languages, render
from frontrow.shared.money import Money
from frontrow.web.site.languages import LANGUAGES as PAGE_LANGUAGES
from tests.boxoffice.messages.text_samples import ABOUT

URL = "https://tickets.example.org/open#frm_x"


def placeholders(words: KindTexts) -> set[str]:
    """Every variable and every counted thing in a kind's templates."""
    text = "\n".join((words.subject, *words.lines, words.short, words.closing or ""))
    names = jinja2.meta.find_undeclared_variables(jinja2.Environment(autoescape=True).parse(text))
    return {*names, *re.findall(r"count\('(\w+)'", text)}


def test_every_kind_of_message_exists_in_all_seven_languages_with_the_same_placeholders() -> None:
    """Issue 11, section 5: mails were in English and German only."""
    assert set(languages()) == set(LANGUAGES) == set(PAGE_LANGUAGES)
    english = languages()["en"]
    assert set(english.kinds) >= {
        *KIND_OF_FACT.values(),
        EVENT_CANCELLED,
        *("sign_in", "invitation", "password_reset"),
        *("confirm_notice", "confirm_registration", "sale_opens", "presale_code", "presale_missed"),
        *REPORT_MAIL_KINDS,
        BUYER_MESSAGE,
    }
    for name, language in languages().items():
        assert language.kinds.keys() == english.kinds.keys(), name
        assert language.words.keys() == english.words.keys(), name
        assert language.counts.keys() == english.counts.keys(), name
        for kind, words in language.kinds.items():
            assert placeholders(words) == placeholders(english.kinds[kind]), (name, kind)
            assert len(words.lines) == len(english.kinds[kind].lines), (name, kind)
            assert words.action, f"{name} {kind} asks for something without the words of its link"
            assert (words.closing is None) == (english.kinds[kind].closing is None), (name, kind)


def test_no_text_was_left_in_english() -> None:
    english = json.dumps(sorted(languages()["en"].kinds["offer"].lines))
    for name in LANGUAGES[1:]:
        for kind, words in languages()[name].kinds.items():
            same = set(words.lines) & set(languages()["en"].kinds[kind].lines)
            assert same <= {line for line in same if not re.sub(r"\{[{%].*?[}%]\}|\W", "", line)}, (name, kind)
    assert english


def test_counts_have_exactly_the_plural_forms_of_their_language() -> None:
    for name, language in languages().items():
        needed = {formats_of(name).plural(count) for count in range(201)}
        for thing, forms in language.counts.items():
            assert forms.keys() == needed, (name, thing)
    assert [MessageWriter("en").count("tickets", n) for n in (1, 2)] == ["1 ticket", "2 tickets"]
    arabic = [MessageWriter("ar").count("tickets", n) for n in (1, 2, 3, 11, 100)]
    assert arabic == ["تذكرة واحدة", "تذكرتان", "3 تذاكر", "11 تذكرة", "100 تذكرة"]
    assert MessageWriter("ja").count("tickets", 1) == "チケット1枚"
    assert MessageWriter("fr").count("hours", 0) == "0 heure"  # French counts nothing in the singular


@pytest.mark.parametrize(
    ("language", "money", "moment"),
    [
        ("en", "€1,234.50", "Friday, 5 June 2026 at 19:30 (Vienna time)"),
        ("de", "1.234,50\u00a0€", "Freitag, 5. Juni 2026, 19:30 Uhr (Ortszeit Wien)"),
        ("fr", "1\u202f234,50\u00a0€", "vendredi 5 juin 2026 à 19:30 (heure de Vienne)"),
        ("es", "1.234,50\u00a0€", "viernes, 5 de junio de 2026, 19:30 (hora de Viena)"),
        ("pt", "1\u00a0234,50\u00a0€", "sexta-feira, 5 de junho de 2026, 19:30 (hora de Viena)"),
        ("ja", "€1,234.50", "2026年6月5日金曜日 19:30（ウィーン時間）"),
    ],
)
def test_money_and_dates_are_written_as_the_reader_writes_them_in_the_venues_time(
    language: str, money: str, moment: str
) -> None:
    assert moment in render("confirmed", language, ABOUT, url=URL).text
    assert money in render("refund_paid", language, ABOUT, url=URL).text
    assert formats_of(language).money(Money(5_000, "JPY")).replace("\u202f", "").count("5") == 1  # a yen has no cents


def test_an_arabic_mail_reads_from_right_to_left_and_keeps_seats_and_dates_in_order() -> None:
    """J12: each value is isolated, so its own order does not mix with the sentence's."""
    made = render("confirmed", "ar", ABOUT, url=URL)
    assert '<html lang="ar" dir="rtl">' in made.html
    for seat in ABOUT["seats"]:
        assert f"<bdi>{seat}</bdi>" in made.html
        assert f"\u2068{seat}\u2069" in made.text
    assert "\u2068الجمعة، 5 يونيو 2026، 19:30 (بتوقيت فيينا)\u2069" in made.text
    assert made.text.count("\u2068") == made.text.count("\u2069")
    english = render("confirmed", "en", ABOUT | {"event_name": "ليلة النجوم"}, url=URL)
    assert "\u2068ليلة النجوم\u2069" in english.subject  # an Arabic name in an English sentence too
    assert "\u2068" not in render("confirmed", "en", ABOUT, url=URL).text


def test_the_link_stands_in_the_text_and_behind_the_words_of_the_button() -> None:
    for name in LANGUAGES:
        for kind in languages()[name].kinds:
            made = render(kind, name, ABOUT, url=URL)
            assert f"{languages()[name].kinds[kind].action}:\n{URL}\n" in made.text
            assert f'href="{URL}"' in made.html


def test_no_name_can_break_a_message() -> None:
    """A hostile event name stays a name, in every kind and language."""
    hostile = ABOUT | {"event_name": "<script>\r\nBcc: x@y", "buyer": "<b>{{ 7*7 }}</b>"}
    for name in LANGUAGES:
        for kind in languages()[name].kinds:
            made = render(kind, name, hostile, url=URL)
            assert "\n" not in made.subject + made.short
            assert "<script>" not in made.html
            assert "<b>" not in made.html
            assert "49" not in made.text
    assert language_of("de_CH") == "de"
    assert language_of("nl") == "en"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refund_of_an_add_on_names_it_and_speaks_of_no_seat(language: str) -> None:
    seats = render("partly_refunded", language, ABOUT, url=URL)
    extras = render("partly_refunded", language, ABOUT | {"seats": (), "add_ons": ("2 × Dinner",)}, url=URL)
    both = render("partly_refunded", language, ABOUT | {"add_ons": ("2 × Dinner",)}, url=URL)
    assert "2 × Dinner" in extras.text
    assert "2 × Dinner" in extras.short
    assert len(extras.text.splitlines()) == len(seats.text.splitlines()) == len(both.text.splitlines()) - 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_seats_that_are_given_back_and_kept_have_the_languages_names(language: str) -> None:
    """Before: "Balcony, Row A, Seat 2" among the Japanese names of the others."""
    given = ABOUT | {"seats": ("Balcony, Row A, Seat 1",), "kept_seats": ("Balcony, Row A, Seat 2",)}
    made = render("partly_refunded", language, given, url=URL)
    for number in ("1", "2"):
        name = seat_text(("Balcony", "A", number), language)
        assert name in made.text
        assert name in made.html


@pytest.mark.parametrize(
    ("written", "greets"),
    [
        ("Hello Ada,\n\nthe doors open at six.", True),
        ("**Liebe Gäste!**\nEinlass ist um sechs.", True),
        ("مرحبًا،\nتفتح الأبواب في السادسة.", True),
        ("The doors open at six.", False),
        ("Because of the weather, which nobody could have foreseen when we planned this,\nwe open later.", False),
        ("", False),
    ],
)
def test_a_message_that_greets_by_itself_is_not_greeted_again(written: str, greets: bool) -> None:
    """Before: "Hello Ada," stood twice in messages to buyers."""
    assert greets_already(written) is greets
