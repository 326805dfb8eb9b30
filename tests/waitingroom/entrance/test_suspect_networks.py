"""Listed networks get harder work and are never refused; the operator's file is read again when it changes."""

import ipaddress
import os
import random
from pathlib import Path

import pytest

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.entrance.human_check import ProofOfWork
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules
from frontrow.waitingroom.entrance.suspect_networks import LOOK_EVERY_S, NetworkList, SuspectNetworks
from frontrow.waitingroom.entrance.used_proofs import MemoryUsedProofs
from tests.support.eventually import eventually_sync

WIDE = EntranceRules("1000/second", "1000/second", "1000/minute")


def test_addresses_on_both_sides_of_each_edge() -> None:
    listed = NetworkList(["192.0.2.0/25 # a comment", "", "# nothing", "2001:db8:5::/48", "198.51.100.7"])
    assert listed.count == 3
    for address in ("192.0.2.0", "192.0.2.127", "198.51.100.7", "2001:db8:5::1", "2001:db8:5:ffff::/64"):
        assert listed.contains(address), address
    for address in ("192.0.1.255", "192.0.2.128", "198.51.100.6", "198.51.100.8", "2001:db8:6::/64", "unknown", ""):
        assert not listed.contains(address), address
    assert listed.contains("::ffff:192.0.2.5"), "IPv4 inside IPv6 is the same address"


@pytest.mark.parametrize("seed", range(5))
def test_overlapping_networks_are_looked_up_as_by_trying_each(seed: int) -> None:
    chance = random.Random(seed)
    networks = [f"10.{chance.randrange(8)}.{chance.randrange(256)}.0/{chance.randint(12, 28)}" for _ in range(40)]
    listed = NetworkList(networks)
    parsed = [ipaddress.ip_network(one, strict=False) for one in networks]
    for _ in range(500):
        address = ipaddress.ip_address(f"10.{chance.randrange(10)}.{chance.randrange(256)}.{chance.randrange(256)}")
        assert listed.contains(str(address)) == any(address in one for one in parsed)


def test_a_line_that_is_no_network_is_named() -> None:
    with pytest.raises(ConfigError, match="line 2: 'example.org' is not an address or network"):
        NetworkList(["10.0.0.0/8", "example.org"])


def test_a_file_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        SuspectNetworks(tmp_path / "none.txt")


def test_a_changed_file_is_read_again_and_a_broken_one_keeps_the_last_list(tmp_path: Path) -> None:
    file, now_s = tmp_path / "networks.txt", [0.0]
    file.write_text("192.0.2.0/24\n")
    suspects = SuspectNetworks(file, monotonic=lambda: now_s[0])

    def change(text: str, at_ns: int) -> None:
        file.write_text(text)
        os.utime(file, ns=(at_ns, at_ns))
        now_s[0] += LOOK_EVERY_S
        suspects.contains("192.0.2.1")
        assert suspects._reading is not None
        suspects._reading.join(10)

    change("198.51.100.0/24\n", 1)
    eventually_sync(lambda: suspects.contains("198.51.100.9"))
    assert not suspects.contains("192.0.2.1")
    change("nonsense\n", 2)
    assert suspects.contains("198.51.100.9")
    file.unlink()
    now_s[0] += LOOK_EVERY_S
    assert suspects.contains("198.51.100.9")


def entrance(tmp_path: Path) -> EntranceLimits:
    file = tmp_path / "networks.txt"
    file.write_text("192.0.2.0/24\n")
    check = ProofOfWork(b"k" * 32, "aurora", MemoryUsedProofs(), max_number=1_000)
    return EntranceLimits({"aurora": check}, rules=WIDE, suspects=SuspectNetworks(file))


def test_a_listed_address_gets_harder_work_and_is_counted(tmp_path: Path) -> None:
    limits = entrance(tmp_path)
    assert limits.challenge("aurora", [], "198.51.100.1")["maxnumber"] == 1_000
    assert limits.challenge("aurora", [], "192.0.2.1")["maxnumber"] == 16_000
    assert dict(limits.harder) == {"network": 1}
    limits.count_ip("192.0.2.1")  # never refused for being listed


def test_signals_together_are_bounded(tmp_path: Path) -> None:
    limits = entrance(tmp_path)
    for _ in range(5_000):
        hardest = limits.challenge("aurora", [], "192.0.2.1")["maxnumber"]
    assert hardest == 64_000


def test_a_proof_is_needed_only_while_the_room_says_so(tmp_path: Path) -> None:
    limits, busy = entrance(tmp_path), [False]
    limits.needs_proof = lambda event: busy[0]
    assert limits.challenge("aurora", [], "198.51.100.1") == {"kind": "none"}
    assert limits.verify("aurora", None, "198.51.100.1") is None
    busy[0] = True
    assert limits.challenge("aurora", [], "198.51.100.1")["kind"] == "altcha"
    with pytest.raises(Exception, match="send the solved challenge"):
        limits.verify("aurora", None, "198.51.100.1")
