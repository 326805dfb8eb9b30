"""The rate limiter: never more than the quota, and nobody chooses who they are."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a log's life is not renewed by the short way",
        "a limiter never admits more than its quota",
        "limits/stores/lua/fast/sliding_log.lua",
        "    call('PEXPIRE', key, ttl)\n",
        "",
        ("tests/limits/test_long_logs.py::test_every_charge_keeps_the_log_alive",),
    ),
    Mutant(
        "a log's life is not renewed by the long way",
        "a limiter never admits more than its quota",
        "limits/stores/lua/sliding_log.lua",
        "    call('PEXPIRE', key, q.ttl)\n",
        "",
        ("tests/limits/test_long_logs.py::test_every_charge_keeps_the_log_alive",),
    ),
    Mutant(
        "a bucket that fills too fast",
        "a limiter never admits more than its quota",
        "limits/stores/lua/bucket.lua",
        "    debt = max(0, debt - (now - before) * leak)\n",
        "    debt = max(0, debt - (now - before + 1) * leak)\n",
        (
            "tests/limits/test_contract.py::test_l1_a_bucket_of_ten_drained_at_two_seconds_gives_one_permit_at_three[redis-token_bucket]",
        ),
    ),
    Mutant(
        "one more per window",
        "a limiter never admits more than its quota",
        "limits/stores/lua/fixed_window.lua",
        "  if used <= q.limit or cost == 0 then",
        "  if used <= q.limit + 1 or cost == 0 then",
        (
            "tests/limits/test_contract.py::test_l1_only_the_fixed_window_lets_two_hundred_through_around_a_boundary[redis-fixed_window]",
        ),
    ),
    Mutant(
        "a refused rule burns the others",
        "a refusal charges nothing",
        "limits/stores/lua/decide.lua",
        "    if allowed[r] and (refused or not charges) then -- report the uncharged state",
        "    if allowed[r] and not charges then -- report the uncharged state",
        ("tests/limits/test_contract.py::test_l4_a_refused_rule_burns_nothing_of_the_others[redis]",),
    ),
    Mutant(
        "a log that forgets early",
        "a limiter never admits more than its quota",
        "limits/algorithms.py",
        "    times = times[bisect_right(times, now_us - period) :]\n",
        "    times = times[bisect_right(times, now_us - period + 1) :]\n",
        ("tests/limits/test_contract.py::test_l11_the_promised_moment_is_true_to_the_microsecond[pure-sliding_log]",),
    ),
    Mutant(
        "one permit too many",
        "so many at once and no more",
        "limits/stores/permits.py",
        "done = permit in self.holders or len(self.holders) + ahead < limit",
        "done = permit in self.holders or len(self.holders) + ahead <= limit",
        ("tests/limits/test_concurrency.py::test_the_third_of_two_at_once_gets_none_until_one_is_released[memory]",),
    ),
    Mutant(
        "a permit jumps the line",
        "the line is served in order",
        "limits/stores/lua/permits.lua",
        "  if held or call('ZCARD', holders) + ahead < limit then",
        "  if held or call('ZCARD', holders) < limit then",
        ("tests/limits/test_concurrency.py::test_the_line_is_served_in_the_order_of_arrival[redis]",),
    ),
    Mutant(
        "a forged address",
        "nobody chooses the address they are counted by",
        "limits/http/client_address.py",
        ("            if not self._in_trusted(hop.strip()):\n                break\n"),
        "",
        (
            "tests/limits/test_client_address.py::test_forwarded_for_is_counted_from_the_right_so_what_a_client_wrote_is_never_reached",
        ),
    ),
    Mutant(
        "a household of addresses",
        "an IPv6 network is one client",
        "limits/http/client_address.py",
        'kept = int.from_bytes(packed, "big") >> (128 - ipv6_prefix) << (128 - ipv6_prefix)',
        'kept = int.from_bytes(packed, "big")',
        ("tests/limits/test_client_address.py::test_l2_ipv6_rotation_inside_one_64_stays_one_client",),
    ),
    Mutant(
        "a lease is handed out again and again",
        "a lease is given back once",
        "limits_service/leases.py",
        "self._open.pop(lease_id, (0.0, None))",
        "self._open.get(lease_id, (0.0, None))",
        ("tests/limits/service/test_leases.py::TestMemory::test_a_lease_is_handed_out_once",),
    ),
    Mutant(
        "a rule book put over another one",
        "two operators do not overwrite each other",
        "limits/stores/rule_versions.py",
        "            if newest != seen:",
        "            if newest < seen:",
        ("tests/limits/test_rule_versions.py::test_one_of_fifty_operators_wins",),
    ),
    Mutant(
        "drops that do not matter",
        "a limit never grows in a window with drops",
        "limits/adaptive/controllers.py",
        "        if sample.drops or late:",
        "        if late:",
        (
            "tests/limits/test_adaptive_controllers.py::test_o7_aimd_adds_one_and_takes_a_tenth",
            "tests/limits/test_adaptive_controllers.py::test_o7_a_window_of_drops_never_raises_the_limit",
        ),
    ),
)
