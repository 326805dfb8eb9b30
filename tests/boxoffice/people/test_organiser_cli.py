"""`frontrow organiser`: the first owner, without any default password (B13)."""

import json

import pytest
from typer.testing import CliRunner

from frontrow.cli.organiser import app

PASSWORD = "a sentence nobody guesses"
CHEAP = {
    "FRONTROW_PEOPLE_ARGON2_MEMORY_KIB": "8",
    "FRONTROW_PEOPLE_ARGON2_TIME_COST": "1",
    "FRONTROW_PEOPLE_ARGON2_LANES": "1",
}


def frontrow(sqlite_ledger_url: str, *words: str, typed: str = "") -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--ledger", sqlite_ledger_url], input=typed, env=CHEAP)
    return done.exit_code, done.output


def test_an_owner_is_made_with_a_password_that_is_asked_for_twice(sqlite_ledger_url):
    create = ("create", "Hall", "--email", "Ada@Example.org")
    assert frontrow(sqlite_ledger_url, *create)[0] == 1, "nothing typed, nothing made"
    code, said = frontrow(sqlite_ledger_url, *create, typed="short\nshort\n")
    assert (code, "12 to 256 characters" in said) == (2, True)
    code, said = frontrow(sqlite_ledger_url, *create, typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert (code, PASSWORD in said) == (0, False)
    code, said = frontrow(sqlite_ledger_url, *create, typed=f"{PASSWORD}\n{PASSWORD}\n")
    assert (code, "has an account already" in said) == (2, True)
    rows = [json.loads(line) for line in frontrow(sqlite_ledger_url, "list", "--json")[1].splitlines()]
    (team,) = [row["team"] for row in rows if row["team"]]
    assert [(one["email"], one["role"], one["totp"]) for one in team] == [("ada@example.org", "owner", False)]
    assert "no second factor yet" in frontrow(sqlite_ledger_url, "list")[1]


def test_an_owner_is_invited_by_a_one_time_link_and_let_back_in_by_another(sqlite_ledger_url):
    words = (
        "create",
        "Hall",
        "--email",
        "ada@example.org",
        "--invite",
        "--url",
        "https://tickets.example.org",
        "--json",
    )
    code, said = frontrow(sqlite_ledger_url, *words)
    assert code == 0
    assert json.loads(said)["link"].startswith("https://tickets.example.org/invitation#fri_")
    code, said = frontrow(sqlite_ledger_url, "reset", "ada@example.org")
    assert (code, "nobody has this address" in said) == (2, True), "not accepted yet: there is nobody to reset"
    create = ("create", "Hall", "--email", "bea@example.org")
    assert frontrow(sqlite_ledger_url, *create, typed=f"{PASSWORD}\n{PASSWORD}\n")[0] == 0
    code, said = frontrow(sqlite_ledger_url, "reset", "bea@example.org")
    assert (code, "#fri_" in said) == (0, True)


@pytest.mark.parametrize("words", [("create", "Hall", "--email", "no address", "--invite"), ("reset", "no address")])
def test_what_cannot_be_right_is_said_in_one_sentence(sqlite_ledger_url, words):
    code, said = frontrow(sqlite_ledger_url, *words)
    assert (code, "is not an e-mail address" in said, "Traceback" in said) == (2, True, False)
