"""The dependencies: locked by hash, installed as locked, complete, and none older than the fixes we know to need.

`make audit` asks a vulnerability service about all of them; that needs the internet. This holds without it.
"""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LOCK = Path(__file__).parents[2] / "requirements" / "dev.txt"
OUR_PACKAGES = ("frontrow", "frontrow-limits", "frontrow-limits-service")
OURS = {*OUR_PACKAGES, "uv", "pip", "setuptools"}  # not from the lock: ourselves and what installs it

# The first version without a published hole that would concern us, and where it was published.
FLOORS = {
    "litestar": ("2.18.0", "CVE-2025-59152 X-Forwarded-For trust"),
    "pyjwt": ("2.10.1", "CVE-2024-53861 issuer check"),
    "cryptography": ("44.0.1", "CVE-2024-12797 bundled OpenSSL"),
    "jinja2": ("3.1.6", "CVE-2025-27516 sandbox"),
    "h11": ("0.16.0", "CVE-2025-43859 chunked smuggling"),
    "starlette": ("0.49.1", "CVE-2025-62727 ranges"),
    "aiohttp": ("3.13.3", "CVE-2025-69223 and others"),
    "urllib3": ("2.6.0", "CVE-2025-66418 decompression"),
    "requests": ("2.32.4", "CVE-2024-47081 netrc"),
    "redis": ("4.5.4", "CVE-2023-28858 another's reply"),
    "werkzeug": ("3.1.4", "CVE-2025-66221 device names"),
    "pillow": ("11.3.0", "CVE-2025-48379 overflow"),
    "fonttools": ("4.61.0", "CVE-2025-66034 path traversal"),
    "idna": ("3.7", "CVE-2024-3651 quadratic time"),
    "certifi": ("2024.7.4", "CVE-2024-39689 withdrawn root"),
}


def locked() -> dict[str, dict[str, int]]:
    """name -> its versions (one for each marker) with the number of their hashes."""
    found: dict[str, dict[str, int]] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", LOCK.read_text().strip()):
        first = block.splitlines()[0].rstrip("\\ ")
        requirement = Requirement(first)
        (pin,) = requirement.specifier
        assert pin.operator == "==", first
        assert requirement.url is None, first
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}", block)
        found.setdefault(canonicalize_name(requirement.name), {})[pin.version] = len(hashes)
    return found


def test_dependency_audit_every_dependency_is_pinned_and_hashed():
    lock = locked()
    assert len(lock) > 50
    assert [name for name, versions in lock.items() if min(versions.values()) < 1] == []


def test_dependency_audit_what_is_installed_is_what_is_locked():
    """Nothing beside the lock, and no other version of anything in it."""
    lock = locked()
    for one in metadata.distributions():
        name = canonicalize_name(one.metadata["Name"])
        if name in OURS and name not in lock:
            continue
        assert name in lock, f"{name} is installed and not locked"
        assert Version(one.version) in map(Version, lock[name]), name


def test_dependency_audit_nothing_is_missing_for_what_we_declare():
    """Every extra's requirements are satisfied by what is locked."""
    lock = locked()
    for text in [text for package in OUR_PACKAGES for text in metadata.requires(package) or []]:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in OUR_PACKAGES or (requirement.marker and "win32" in str(requirement.marker)):
            continue
        assert all(requirement.specifier.contains(version) for version in lock[name]), text


def test_dependency_audit_no_version_is_older_than_a_fix_we_know_to_need():
    lock = locked()
    checked = [name for name in FLOORS if name in lock]
    assert len(checked) >= 10
    for name in checked:
        floor, why = FLOORS[name]
        assert min(map(Version, lock[name])) >= Version(floor), f"{name} {sorted(lock[name])}: {why}"
