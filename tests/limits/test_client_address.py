"""L2: who a request is counted for by address. The CVE classes: forged X-Forwarded-For, IPv6 rotation, IPv4-mapped."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits.http.client_address import MAX_HOPS, ClientAddress, ip_key


def test_l2_ipv4_mapped_addresses_fold_to_the_same_client_as_ipv4():
    assert ip_key("::ffff:192.0.2.1") == ip_key("::FFFF:c000:201") == ip_key("192.0.2.1") == "192.0.2.1"


def test_l2_ipv6_rotation_inside_one_64_stays_one_client():
    keys = {ip_key(f"2001:db8:1:2:{host:x}::{host:x}") for host in range(1, 500)}
    assert keys == {"2001:db8:1:2::/64"}
    assert ip_key("2001:db8:1:3::1") not in keys


@pytest.mark.parametrize(
    "text", ["192.0.2.1:8080", " 192.0.2.1 ", '"192.0.2.1"', "[::ffff:192.0.2.1]:443", "::ffff:192.0.2.1%eth0"]
)
def test_l2_ports_brackets_quotes_and_zones_do_not_make_a_new_client(text):
    assert ip_key(text) == "192.0.2.1"


@pytest.mark.parametrize("text", ["", "localhost", "010.0.0.1", "1.2.3", "1.2.3.4.5", "::g", "1.2.3.4\x00", "x" * 9999])
def test_l15_what_is_no_address_is_a_clear_error(text):
    with pytest.raises(InvalidInput, match=r"is not an IP address like 192\.0\.2\.1"):
        ip_key(text)


@given(st.ip_addresses(v=6))
def test_l2_every_ipv6_address_has_the_key_of_its_64_or_of_its_ipv4(address):
    expected = str(address.ipv4_mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    found = ip_key(str(address))
    network = ipaddress.ip_network(found)
    assert network == ipaddress.ip_network(expected)


@given(st.ip_addresses(v=4))
def test_l2_an_ipv4_address_and_its_mapped_form_have_one_key(address):
    assert ip_key(str(address)) == ip_key(f"::ffff:{address}") == str(address)


def test_forwarded_for_is_ignored_when_no_proxy_is_configured():
    """Litestar CVE-2025-59152: a client chose its own address."""
    clients = ClientAddress()
    assert {clients.key("192.0.2.1", [f"10.0.0.{i}"]) for i in range(50)} == {"192.0.2.1"}


def test_forwarded_for_is_ignored_when_the_peer_is_not_a_configured_proxy():
    clients = ClientAddress(["10.0.0.0/8"])
    assert {clients.key("192.0.2.1", [f"203.0.113.{i}"]) for i in range(50)} == {"192.0.2.1"}


def test_forwarded_for_is_counted_from_the_right_so_what_a_client_wrote_is_never_reached():
    """pretix CVE-2023-44463: the leftmost entry is the client's own fiction."""
    clients = ClientAddress(["10.0.0.0/8"])
    forged = {clients.key("10.0.0.1", [f"198.51.100.{i}, 203.0.113.9, 10.0.0.2"]) for i in range(50)}
    assert forged == {"203.0.113.9"}
    assert clients.key("10.0.0.1", ["1.1.1.1", "203.0.113.9"]) == "203.0.113.9", "several header lines are one list"


def test_a_client_that_claims_to_be_a_proxy_gains_nothing():
    clients = ClientAddress(["10.0.0.0/8"])
    assert clients.key("10.0.0.1", ["9.9.9.9, 10.0.0.77, 203.0.113.9"]) == "203.0.113.9"


def test_nonsense_in_forwarded_for_counts_for_the_nearest_hop_that_makes_sense():
    clients = ClientAddress(["10.0.0.0/8"])
    assert clients.key("10.0.0.1", ["unknown"]) == "10.0.0.1"
    assert clients.key("10.0.0.1", ["203.0.113.9, garbage, 10.0.0.2"]) == "10.0.0.2"
    assert clients.key("10.0.0.1", []) == "10.0.0.1"
    assert clients.key("10.0.0.1", [", ,,"]) == "10.0.0.1"


def test_the_walk_through_forwarded_for_is_bounded():
    clients = ClientAddress(["10.0.0.0/8"])
    many = ", ".join(["203.0.113.9"] + ["10.0.0.5"] * MAX_HOPS)
    assert clients.key("10.0.0.1", [many]) == "10.0.0.5"
    assert clients.key("10.0.0.1", [many.replace(", 10.0.0.5", "", 1)]) == "203.0.113.9"


def test_a_proxy_is_recognised_in_its_ipv4_mapped_form_too():
    for configured in ("10.0.0.0/8", "::ffff:10.0.0.0/104"):
        clients = ClientAddress([configured])
        assert clients.key("::ffff:10.0.0.1", ["203.0.113.9"]) == "203.0.113.9"
        assert clients.key("11.0.0.1", ["203.0.113.9"]) == "11.0.0.1"


def test_an_ipv6_proxy_and_a_unix_socket_can_be_trusted():
    clients = ClientAddress(["2001:db8::/32", "unix"])
    assert clients.key("2001:db8::5", ["203.0.113.9"]) == "203.0.113.9"
    assert clients.key(None, ["203.0.113.9"]) == "203.0.113.9"


def test_l15_no_address_at_all_is_none_and_never_an_empty_key():
    assert ClientAddress().key(None, ["203.0.113.9"]) is None
    assert ClientAddress().key("", []) is None
    assert ClientAddress(["unix"]).key(None, []) is None


def test_a_peer_the_server_names_without_an_address_is_counted_by_that_name():
    """Starlette's test client is called `testclient`."""
    assert ClientAddress().key("testclient", ["203.0.113.9"]) == "testclient"
    assert ClientAddress(["10.0.0.0/8"]).key("testclient", ["203.0.113.9"]) == "testclient"


def test_l15_a_wrong_proxy_or_prefix_is_an_error_that_shows_a_valid_one():
    with pytest.raises(ConfigError, match=r"trusted_proxies.*'10\.0\.0'.*valid: 10\.0\.0\.0/8"):
        ClientAddress(["10.0.0"])
    with pytest.raises(ConfigError, match="ipv6_prefix must be from 1 to 128, not 0"):
        ClientAddress(ipv6_prefix=0)


def test_the_ipv6_prefix_can_be_wider():
    assert ClientAddress(ipv6_prefix=56).key("2001:db8:1:2ff::1") == "2001:db8:1:200::/56"
