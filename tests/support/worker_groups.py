"""Which tests run in one worker, one after the other, because they share something that takes seconds to start.

pytest-xdist 3.8 reads its own marker for this from a field that pytest 9 no longer has, so the groups are made here.
"""

import re
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

# other files whose tests share a server -> their group
SHARED: Final = {
    "tests/app/test_settings_used.py": "settings",
    "tests/boxoffice/payments/test_providers.py": "providers",
    "tests/contracts/test_seat_claims.py": "claims",
    "tests/docs/test_commands.py": "commands",
    "tests/test_packaging.py": "packaging",
    "tests/web/room/test_browser.py": "room",
    "tests/web/room/test_serve.py": "room",
    "tests/web/room/test_several.py": "room",
}
FORM: Final = re.compile(r"[\[-](embedded|clustered)[\]-]")


def group_of(nodeid: str) -> str:
    """The group of a test, by its file: browser tests share a site, journeys a shop of one form."""
    file, _, name = nodeid.partition("::")
    if file.startswith("tests/journeys/"):
        form = FORM.search(name)
        return f"{file} {form[1] if form else ''}"
    if file.startswith("tests/browser/"):
        return file
    return SHARED.get(file, nodeid)


class GroupScheduling(LoadScopeScheduling):
    """Gives whole groups to the workers, those with the most tests first; any other test is a group of its own."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """A group whose tests have all run is forgotten: xdist goes through every group it keeps after each test."""
        super().mark_test_complete(node, item_index, duration)
        groups = self.assigned_work.get(node, {})
        group = group_of(self.registered_collections[node][item_index])
        if all(groups.get(group, {}).values()):
            groups.pop(group, None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """`--dist loadgroup` goes by these groups."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None
