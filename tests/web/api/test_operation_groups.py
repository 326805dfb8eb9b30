"""Every operation of the document is in a group, and every group has operations."""

import importlib
import pkgutil

import pytest

from frontrow.web import api
from frontrow.web.api.operation_groups import GROUPS, group_of
from frontrow.web.server.app import routes


def test_every_operation_has_a_group_and_no_group_is_empty() -> None:
    paths = [path.replace(":str}", "}") for handler in routes() for path in handler.paths]
    assert {group_of(path) for path in paths} == set(GROUPS)


def test_the_longest_beginning_decides() -> None:
    assert group_of("/v1/events").name == "Events and seats"
    assert group_of("/v1/events/{event_id}/seats.bin").name == "Events and seats"
    assert group_of("/v1/events/{event_id}/room/join").name == "Waiting room"
    assert group_of("/v1/bookings/{booking_id}/tickets.pdf").name == "Tickets"
    assert group_of("/v1/bookings/{booking_id}/hold").name == "Holds"


def test_a_path_without_a_group_says_where_to_add_it() -> None:
    with pytest.raises(LookupError, match=r"/v2/events has no group; add it to one in web/api/operation_groups\.py"):
        group_of("/v2/events")


def test_no_module_of_the_api_is_forgotten() -> None:
    for module in pkgutil.walk_packages(api.__path__, f"{api.__name__}."):
        for handler in getattr(importlib.import_module(module.name), "ROUTES", []):
            assert handler in routes(), module.name
