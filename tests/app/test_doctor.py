"""`frontrow doctor`: finds what would hurt a sale, says what to do, shows no secret, ends with the right code."""

import asyncio
import json
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from frontrow.app import doctor as checks
from frontrow.app.doctor import FAIL, OK, WARN, Finding, examine
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import connect_sync
from frontrow.settings.overload import OverloadSettings
from frontrow.settings.platform import (
    MailSettings,
    read_settings,
)
from frontrow.shared import open_files
from tests.app.fit_settings import GOOD_KEY, NO_LEDGER, settings
from tests.boxoffice.messages.receivers import smtp_server
from tests.support.servers import Valkey


def states(found: list[Finding], check: str) -> list[str]:
    return [one.state for one in found if one.check == check]


def test_an_embedded_server_that_never_ran_is_fit(tmp_path):
    found = asyncio.run(examine(settings(tmp_path)))
    assert FAIL not in [one.state for one in found], found
    assert WARN in states(found, "ledger")
    assert states(found, "secret") == [OK]


def test_mails_that_reach_nobody_are_told(tmp_path):
    bare = settings(tmp_path)
    assert [one.state for one in checks.mail(bare)] == [WARN]
    assert any("links in mails lead to http://127.0.0.1:8000" in one.says for one in checks.server(bare))
    server = replace(bare.server, public_url="https://tickets.example.org")
    ready = replace(bare, server=server, mail=MailSettings("smtp://mail:587?from=tickets@example.org"))
    assert [one.state for one in checks.mail(ready)] == [OK]
    misspelt = list(checks.mail(replace(bare, mail=MailSettings("smpt://u:hunter2@mail"))))
    assert [one.state for one in misspelt] == [FAIL]
    assert "hunter2" not in misspelt[0].says
    assert not any("links in mails" in one.says for one in checks.server(ready))


def test_a_mail_server_that_lets_nobody_in_is_told(tmp_path):
    """The doctor said that mails leave by mail.url while nothing listened there."""

    def seen(url: str) -> list[Finding]:
        given = replace(settings(tmp_path), mail=MailSettings(url))
        return [one for one in asyncio.run(examine(given)) if "mail server lets" in one.says or "let us in" in one.says]

    (gone,) = seen("smtp://u:hunter2@127.0.0.1:1?from=tickets@example.org")
    assert (gone.check, gone.state) == ("mail", WARN)
    assert "hunter2" not in repr(gone)
    with smtp_server() as post:
        (there,) = seen(f"smtp://127.0.0.1:{post.port}?from=tickets@example.org")
        assert (there.check, there.state, post.mails) == ("mail", OK, [])
        (refused,) = seen(f"smtp://u:hunter2@127.0.0.1:{post.port}?from=tickets@example.org")
        assert (refused.state, "hunter2" in repr(refused)) == (WARN, False), "this server takes no passwords"
    assert seen(str(tmp_path / "outbox")) == []


def test_a_folder_that_is_a_file_fails(tmp_path):
    (tmp_path / "file").touch()
    assert states(list(checks.disk(settings(tmp_path / "file"))), "disk") == [FAIL]


@pytest.mark.parametrize(
    "key",
    [
        "changeme" * 8,
        "a" * 64,
        "0123456789" * 4,
        "correct horse battery staple correct horse",
        "secretsecretsecretsecretsecretsecret",
    ],
)
def test_a_secret_that_can_be_guessed_fails_and_is_not_shown(tmp_path, key):
    found = list(checks.secrets(settings(tmp_path, key)))
    assert [one.state for one in found] == [FAIL]
    assert key not in repr(found)


def test_a_schema_that_is_old_fails_and_says_what_to_run(tmp_path):
    url = f"sqlite:///{tmp_path / 'frontrow.db'}"
    migrate(url, "0003")
    found = asyncio.run(checks.ledger(settings(tmp_path, ledger=url)))
    assert [one.state for one in found if one.check == "ledger"] == [FAIL]
    assert "frontrow ledger migrate" in found[-1].do
    migrate(url)
    assert FAIL not in [one.state for one in asyncio.run(checks.ledger(settings(tmp_path, ledger=url)))]


@pytest.mark.parametrize(("off_s", "state"), [(0, OK), (0.5, OK), (2, WARN), (-2, WARN), (40, FAIL), (-40, FAIL)])
def test_clocks_that_differ_are_told(off_s, state):
    now_s = time.time()
    assert checks.clock("redis", now_s + off_s, now_s, now_s).state == state


@pytest.mark.parametrize(("free", "state"), [(10**8 - 1, FAIL), (5 * 10**8, WARN), (5 * 10**9, OK)])
def test_a_full_disk_is_told(tmp_path, free, state):
    assert checks.free_space(tmp_path, free).state == state


def test_redis_that_throws_keys_away_fails(own_valkey, postgres_ledger_url, tmp_path):
    wanted = settings(tmp_path, redis=own_valkey.url, ledger=postgres_ledger_url)
    found = asyncio.run(examine(wanted))
    assert FAIL not in [one.state for one in found], found
    assert states(found, "clocks") == [OK, OK]
    with connect_sync(own_valkey.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    found = asyncio.run(examine(wanted))
    bad = [one for one in found if one.state == FAIL]
    assert [one.check for one in bad] == ["redis"]
    assert "noeviction" in bad[0].do


@pytest.mark.parametrize(("appendfsync", "states"), [("everysec", [OK]), ("always", [OK]), ("no", [WARN])])
def test_redis_that_leaves_writing_to_the_machine_is_told(appendfsync, states):
    config = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": appendfsync}
    found = checks.keeps({"role": "master"}, config)
    assert [one.state for one in found] == states
    assert states == [OK] or "everysec" in found[0].do


def test_stores_that_do_not_answer_fail_with_a_reason(tmp_path):
    gone = settings(tmp_path, redis="redis://127.0.0.1:1/0", ledger="postgresql://postgres:hunter2@127.0.0.1:1/none")
    found = asyncio.run(examine(gone))
    assert {one.check for one in found if one.state == FAIL} == {"ledger", "redis"}
    assert "hunter2" not in repr(found)


def test_fewer_files_or_connections_than_streams_are_told(tmp_path):
    """What a server may raise its limit to counts, and live streams are connections."""
    most, bare = open_files.read_most_files(), settings(tmp_path)
    told = [one.says for one in checks.server(replace(bare, overload=OverloadSettings(max_connections=most)))]
    assert f"{most} files may be open, {most + open_files.SPARE} are needed" in told
    many = replace(bare, server=replace(bare.server, max_streams=50_000))
    (short,) = [one for one in checks.server(many) if "max_streams" in one.says]
    assert (short.state, "no more than 16200" in short.says, "55556 or more" in short.do) == (WARN, True, True)
    enough = replace(many, overload=OverloadSettings(max_connections=55_556))
    assert not any("max_streams" in one.says for one in checks.server(enough))


@pytest.mark.parametrize("mark", "/?#@[")
def test_a_password_with_marks_is_never_shown_in_pieces(tmp_path, mark):
    """`redis://:hunter2/x@host` has a port `hunter2` for whoever reads it literally, and then says so."""
    with pytest.raises(ConfigError) as refused:
        settings(tmp_path, redis="redis://127.0.0.1:1/0", ledger=f"postgresql://u:hunter2{mark}/x@127.0.0.1:1/none")
    assert "hunter2" not in refused.value.message
    assert "%2F" in refused.value.message
    odd = settings(tmp_path, redis=f"redis://:hunter2{mark}x@127.0.0.1:1/0", ledger=NO_LEDGER)
    found = asyncio.run(examine(odd))
    assert "redis" in {one.check for one in found if one.state == FAIL}
    assert "hunter2" not in repr(found)
    for password in (f"hunter2{mark}x", f"25{mark}hunter2"):  # the second one would be the host u at port 25
        (mail,) = checks.mail(replace(odd, mail=MailSettings(f"smtp://u:{password}@mail.example.org:25?from=a@b.org")))
        assert mail.state == (OK if mark == "@" else FAIL)
        assert "hunter2" not in repr(mail)


def test_a_password_in_payments_url_is_not_shown():
    with pytest.raises(ConfigError, match="payments.url must be python:") as refused:
        read_settings(env={"FRONTROW_SERVER_DEMO": "true", "FRONTROW_PAYMENTS_URL": "https://u:hunter2@bank.example"})
    assert "hunter2" not in refused.value.message


def test_a_redis_that_refuses_us_or_our_scripts_says_so(tmp_path):
    with Valkey("--requirepass", "right") as server:
        bad = settings(tmp_path, redis=f"redis://:hunter2@127.0.0.1:{server.port}/0", ledger=NO_LEDGER)
        found = [one for one in asyncio.run(examine(bad)) if one.check == "redis"]
        assert [one.state for one in found] == [FAIL]
        assert "refuses us" in found[0].says
        assert "password" in found[0].do
        assert "hunter2" not in repr(found)
        with connect_sync(f"redis://:right@127.0.0.1:{server.port}/0") as admin:
            admin.execute_command(
                "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection", "+info", "+time"
            )
        half = settings(tmp_path, redis=f"redis://reader:pw@127.0.0.1:{server.port}/0", ledger=NO_LEDGER)
        found = [one for one in asyncio.run(examine(half)) if one.check == "limits"]
        assert [one.state for one in found] == [FAIL]
        assert "evalsha" in found[0].says


def test_the_command_answers_in_json_with_its_exit_code(tmp_path, monkeypatch):
    import typer

    from frontrow.cli.doctor import doctor

    app = typer.Typer()
    app.command()(doctor)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRONTROW_SECRET_KEY", GOOD_KEY)
    told = CliRunner().invoke(app, ["--json", "--demo"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["fit"] is True
    monkeypatch.delenv("FRONTROW_SECRET_KEY")
    assert "--demo" not in CliRunner().invoke(app, []).output
    (tmp_path / "frontrow-data").mkdir()
    (tmp_path / "frontrow-data" / "secret.key").write_text(GOOD_KEY)
    told = CliRunner().invoke(app, [])
    assert (told.exit_code, "`frontrow doctor --demo`" in told.output) == (1, True), "beside a demo's folder"
    monkeypatch.setenv("FRONTROW_SECRET_KEY", "short")
    told = CliRunner().invoke(app, ["--demo"])
    assert told.exit_code == 1
    assert "secret.key" in told.output
    assert "FAIL" in told.output
    monkeypatch.setenv("FRONTROW_SECRET_KEY", GOOD_KEY)
    monkeypatch.setenv("FRONTROW_STRIPE_KEY", "sk_test_1")
    monkeypatch.setenv("FRONTROW_STRIPE_WEBHOOK_SECRET", "whsec_1")
    told = CliRunner().invoke(app, [])
    assert told.exit_code == 1
    assert "stripe.publishable_key is not set" in told.output
