"""Addresses, names and rights as values: what is kept, compared, found and allowed."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.people.model import person_names
from frontrow.boxoffice.people.model.email_addresses import canonical_email, checked_email, is_email
from frontrow.boxoffice.people.model.people import (
    MAX_NAME_CHARS,
    ApiKey,
    NotAllowed,
    Session,
    Staff,
    Stage,
    SubjectKind,
    checked_name,
    checked_scopes,
    csrf_of,
    secret_hash,
)
from frontrow.boxoffice.people.model.person_names import clean_name, folded_name, name_tails, search_words
from frontrow.boxoffice.people.model.roles import PERMISSIONS, ROLES, Role
from frontrow.core.errors import InvalidInput

SESSION = Session("ses_1", SubjectKind.STAFF, "stf_1", Stage.FULL, 0, 100, 1_000, 50, role=Role.OWNER)
KEY = ApiKey("key_1", "org_1", "Till", tuple(sorted(ROLES[Role.OWNER])), "stf_1", 0, maker_role=Role.OWNER)


def test_an_address_is_compared_without_case_of_its_latin_letters() -> None:
    assert canonical_email("  ADA.Lovelace@Example.ORG ") == "ada.lovelace@example.org"
    assert canonical_email("Ä@x.org") == "Ä@x.org", "what a server does with it nobody knows"
    assert canonical_email("e\u0301@x.org") == "\xe9@x.org"
    assert canonical_email("no at sign") == "no at sign"


@pytest.mark.parametrize("text", ["ada@example.org", "a@b.co", "a" * 64 + "@example.org", "a+b@example.org"])
def test_an_address(text: str) -> None:
    assert checked_email(text) == text
    assert is_email(text)


@pytest.mark.parametrize(
    "text", ["", "ada", "@example.org", "ada@", "a" * 65 + "@example.org", "a b@x.org", "a\n@x.org"]
)
def test_what_is_no_address(text: str) -> None:
    assert not is_email(text)
    with pytest.raises(InvalidInput) as refused:
        checked_email(text)
    assert refused.value.param == "email"


def test_a_machine_without_a_domain_is_not_on_the_open_internet() -> None:
    assert checked_email("ada@localhost") == "ada@localhost"
    assert not is_email("ada@localhost")


def test_a_name_is_kept_as_one_line_without_anything_invisible() -> None:
    assert clean_name("  Ada\n  Love\u200blace ") == "Ada Love lace"
    assert clean_name("e\u0301") == "\xe9"
    assert clean_name("\u200c\u200d ") == "", "joiners alone are no name"
    assert (
        clean_name("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645")
        == "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    )
    assert clean_name("a" * 10_000) == "a" * person_names.MAX_NAME_CHARS


def test_a_name_is_found_without_accents_case_and_by_any_part() -> None:
    assert folded_name("Søren  ÆGIR-Ó'Brien") == "soren aegir o brien"
    assert name_tails("ada li") == ["a", "ada", "da", "i", "li"]
    assert search_words("li Lovelace") == ["lovelace", "li"]
    assert search_words("a b") == [], "single letters find everybody"
    assert search_words("\u9ad8") == ["\u9ad8"]
    assert search_words("") == []


def test_a_session_lives_until_its_end_and_while_it_is_used() -> None:
    assert (SESSION.alive(149), SESSION.alive(150)) == (True, False)
    long = replace(SESSION, idle_us=10_000)
    assert (long.alive(999), long.alive(1_000)) == (True, False)


def test_a_session_may_what_its_role_may_once_it_is_complete() -> None:
    assert SESSION.permissions() == ROLES[Role.OWNER] != frozenset()
    assert replace(SESSION, role=None).permissions() == frozenset()
    for stage in set(Stage) - {Stage.FULL}:
        assert replace(SESSION, stage=stage).permissions() == frozenset()


def test_a_key_may_what_its_scopes_say_and_its_maker_still_may() -> None:
    assert KEY.permissions(10**18) == ROLES[Role.OWNER]
    assert replace(KEY, maker_role=None).permissions(0) == frozenset()
    ends = replace(KEY, ends_at_us=100)
    assert (ends.permissions(99), ends.permissions(100)) == (ROLES[Role.OWNER], frozenset())
    for role in Role:
        assert replace(KEY, maker_role=role).permissions(0) == ROLES[role]
    assert replace(KEY, scopes=()).permissions(0) == frozenset()


def test_a_secret_is_kept_as_a_hash_of_its_kind() -> None:
    assert secret_hash("session", "s") != secret_hash("key", "s") != "s"
    assert csrf_of("s") == secret_hash("csrf", "s")[:43]


def test_a_member_is_shown_without_secrets() -> None:
    member = Staff("stf_1", "org_1", "a@x.org", "Ada", Role.OWNER, "the hash", "the sealed secret")
    assert repr(member) == f"Staff(stf_1, org_1, {Role.OWNER})"


def test_the_name_of_something_is_one_printable_line() -> None:
    assert checked_name(" Box\toffice\n1 ") == "Box office 1"
    assert checked_name("n" * MAX_NAME_CHARS) == "n" * MAX_NAME_CHARS
    for text in ("", " \n", "n" * (MAX_NAME_CHARS + 1)):
        with pytest.raises(InvalidInput) as refused:
            checked_name(text, "title")
        assert refused.value.param == "title"


def test_nobody_gives_away_what_they_may_not_do() -> None:
    known = sorted(PERMISSIONS)
    assert checked_scopes(reversed(known), frozenset(known)) == tuple(known)
    assert checked_scopes([known[0], known[0]], frozenset(known)) == (known[0],)
    for scopes in ([], ["unknown"], [known[0], "unknown"]):
        with pytest.raises(InvalidInput) as refused:
            checked_scopes(scopes, frozenset(known))
        assert refused.value.param == "scopes"
    with pytest.raises(NotAllowed):
        checked_scopes(known[:2], frozenset(known[:1]))
