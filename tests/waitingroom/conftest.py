"""Keys made once, rooms of every kind, real servers from the common fixtures."""

import pytest

from frontrow.waitingroom.credentials.room_keys import RoomKeys


@pytest.fixture(scope="session")
def room_keys() -> RoomKeys:
    return RoomKeys.generate()
