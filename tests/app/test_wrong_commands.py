"""Commands that a stranger gets wrong: one sentence, nothing made, nothing lost."""

import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from frontrow.app.command_services import open_people
from frontrow.app.demo_season import BUSY_ID, EXAMPLE_ID, SOON_ID
from frontrow.app.ledger_tools import opened_ledger
from frontrow.app.made_up_events import DAY_US, OWNER, offer_example
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.people.model.people import DEFAULT_ORGANISER
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.model.venues import SectionKind
from frontrow.cli import organiser
from frontrow.cli.backups import restore
from frontrow.cli.folder_lock import lock_folder
from frontrow.cli.serve import serve
from frontrow.core.clock import SystemClock
from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import read_toml
from frontrow.settings.deployment import read_deployment
from frontrow.shared.local_time import local_time
from frontrow.web.site.demo_pages import TOUR
from tests.web.api.support import put_into


def test_a_second_embedded_server_does_not_start_in_the_same_folder(tmp_path: Path) -> None:
    """Each would have a queue and seat claims of its own."""
    handle = lock_folder(tmp_path / "data")
    with pytest.raises(ConfigError, match="another frontrow serve uses"):
        lock_folder(tmp_path / "data")
    os.close(handle)
    os.close(lock_folder(tmp_path / "data"))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be used"):
        lock_folder(tmp_path / "file" / "data")


def test_looking_for_organisers_in_the_wrong_folder_makes_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(organiser.app, ["list"])
    assert listed.exit_code == 2
    assert "there is no ledger" in listed.output
    weak = CliRunner().invoke(organiser.app, ["create", "Hall", "--email", "me@example.org"], input="short\nshort\n")
    assert weak.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_settings_file_that_is_a_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_toml(tmp_path)


def test_rubbish_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk" * 100)
    app = typer.Typer()
    app.command()(restore)
    told = CliRunner().invoke(app, [str(tmp_path / "junk"), "--folder", str(tmp_path / "data")])
    assert told.exit_code == 2
    assert "is no backup of a ledger" in told.output
    assert not (tmp_path / "data" / "frontrow.db").exists()


def test_a_port_that_does_not_exist_is_refused() -> None:
    app = typer.Typer()
    app.command()(serve)
    told = CliRunner().invoke(app, ["--demo", "--port", "99999"])
    assert told.exit_code == 2
    assert "65535" in told.output


def ways(lines: list[str]) -> dict[str, str]:
    """What a banner says to open, by name."""
    return {line[2:23].strip(): line[23:] for line in lines}


async def test_every_start_of_the_demo_says_how_to_look_at_it(tmp_path: Path) -> None:
    deployment = read_deployment(None, {}, folder=str(tmp_path))
    first, second = [ways(await offer_example(deployment)) for _ in range(2)]
    assert "/invitation#" in first["become the organiser"]
    assert "/invitation#" in second["become the organiser"], "until somebody used the link"
    assert second["a fan's page"] == first["a fan's page"]
    assert f"/events/{BUSY_ID} " in second["a waiting room"]
    assert second["mails"].endswith(f"/demo/mails (files in {tmp_path / 'outbox'})")
    assert second["what to look at"].endswith("/demo")
    async with open_people(deployment) as people:
        await people.team.add_owner(DEFAULT_ORGANISER, OWNER, "Ada", "correct horse battery staple")
    third = ways(await offer_example(deployment))
    assert third["become the organiser"].endswith(f"/organiser/sign-in as {OWNER}"), "or nobody knows who to be"
    async with opened_ledger(deployment.ledger_url, auto_migrate=None) as ledger:
        show = (await ledger.catalogue.events(limit=1))[0]
    assert show.id == EXAMPLE_ID, "the one without a queue comes first in every list"
    assert f"{local_time(show.starts_at_us, 'Europe/Vienna'):%H:%M:%S}" == "20:00:00", "an evening at the venue"


async def test_the_season_of_the_demo_has_every_kind_of_event(tmp_path: Path) -> None:
    deployment = read_deployment(None, {}, folder=str(tmp_path))
    await offer_example(deployment)
    async with opened_ledger(deployment.ledger_url, auto_migrate=None) as ledger:
        events = {event.id: event for event in await ledger.catalogue.events(limit=50)}
        venues = {event.venue_id: await ledger.catalogue.venue(event.venue_id) for event in events.values()}
        floor = await ledger.catalogue.plan_document(events["evt_late"].plan_hash)
    assert set(events) >= set(TOUR), "the tour names only what there is"
    assert floor is not None
    assert [section.kind for section in decode_plan(floor.encode()).sections] == [SectionKind.AREA]
    assert {event.currency for event in events.values()} == {"EUR", "GBP", "JPY"}
    assert len({venue.city for venue in venues.values() if venue}) == 5
    assert events["evt_philharmonic"].status is EventStatus.SOLD_OUT
    assert events[SOON_ID].sale_starts_at_us > SystemClock()() > events[EXAMPLE_ID].sale_starts_at_us
    assert {tier.price.minor for tier in events["evt_rehearsal"].tiers} == {0}
    assert sum(event.show_id == "shw_play" for event in events.values()) == 3
    assert events[EXAMPLE_ID].add_ons
    assert events["evt_match"].ticket_types


async def test_a_demo_that_starts_again_says_what_one_organiser_has(tmp_path: Path) -> None:
    """The event that it names and the organiser that it invites belong together, whoever else sells here."""
    deployment = read_deployment(None, {}, folder=str(tmp_path / "both"))
    await offer_example(deployment)
    earlier = {"id": "evt_earlier", "organiser_id": "org_other", "starts_at_us": SystemClock()() + DAY_US}
    async with opened_ledger(deployment.ledger_url, auto_migrate=None) as ledger:
        await put_into(ledger, SystemClock()(), **earlier)
    told = ways(await offer_example(deployment))
    assert told["a fan's page"].endswith(f"/events/{EXAMPLE_ID}")
    assert told["its live sale"].endswith(f"/{EXAMPLE_ID}/live")

    theirs = read_deployment(None, {}, folder=str(tmp_path / "theirs"))
    async with opened_ledger(theirs.ledger_url, auto_migrate=None) as ledger:
        await put_into(ledger, SystemClock()(), **earlier)
    told = ways(await offer_example(theirs))
    assert told["a fan's page"].endswith("/events/evt_earlier")
    assert told["its organiser"].endswith("/organiser/sign-in")
    assert {"become the organiser", "its live sale", "a waiting room"} & told.keys() == set()
