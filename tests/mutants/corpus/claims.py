"""The claim store: who has which seat right now."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a refused group keeps its first part",
        "a group of seats is held whole or not at all",
        "boxoffice/adapters/claims/redis.py",
        (
            "                    if isinstance(result, ClaimRefused):\n"
            "                        await self._undo(claim, sent)\n"
        ),
        "                    if isinstance(result, ClaimRefused):\n",
        ("tests/contracts/test_seat_claims.py::test_contract[a_group_across_sections_is_all_or_nothing-redis]",),
    ),
    Mutant(
        "a claim of a taken seat",
        "a seat has one claim",
        "boxoffice/adapters/claims/lua/seats.lua",
        "      elseif kind == 's' or sub(was, -18, -3) > now then",
        "      elseif kind == 's' then",
        (
            "tests/contracts/test_seat_claims.py::test_contract[a_claimed_seat_is_refused_to_everybody_else_with_its_name-redis]",
        ),
    ),
    Mutant(
        "a claim ends a moment late",
        "a claim ends at its instant",
        "boxoffice/adapters/claims/lua/seats.lua",
        "      elseif kind == 's' or sub(was, -18, -3) > now then",
        "      elseif kind == 's' or sub(was, -18, -3) >= now then",
        ("tests/contracts/test_seat_claims.py::test_contract[a_claim_ends_exactly_at_its_expiry-redis]",),
    ),
    Mutant(
        "a late repeat unsells a seat",
        "a sold seat stays sold",
        "boxoffice/adapters/claims/lua/seats.lua",
        "        if kind == 's' then sold = sold or {}; sold[k] = true end -- a late repeat must not unsell it\n",
        "",
        (
            "tests/contracts/test_seat_claims.py::test_contract[a_sold_seat_never_ends_and_a_late_repeat_does_not_unsell_it-redis]",
        ),
    ),
    Mutant(
        "anybody releases",
        "only the owner releases",
        "boxoffice/adapters/claims/lua/seats.lua",
        ("    if was and find(was, mine, 1, true) then\n      call('UNLINK'"),
        ("    if was then\n      call('UNLINK'"),
        (
            "tests/contracts/test_seat_claims.py::test_contract[overlapping_groups_never_deadlock_and_never_share-redis]",
        ),
    ),
    Mutant(
        "a lost store is an empty house",
        "an empty store refuses",
        "boxoffice/adapters/claims/lua/seats.lua",
        ("  elseif stale[section] then\n    answers[asked] = stale[section]\n"),
        "",
        ("tests/contracts/test_seat_claims.py::test_contract[while_it_is_being_filled_the_store_refuses-redis]",),
    ),
    Mutant(
        "a hold extended after it was lost",
        "only the owner of a live claim extends it",
        "boxoffice/adapters/claims/lua/seats.lua",
        (
            "    elseif op == EXTEND then\n"
            "      taken = (taken and taken .. '\\n' or '') .. (k - first) .. ':'\n"
            "    end\n"
            "  end\n"
            "  if taken"
        ),
        ("    end\n  end\n  if taken"),
        (
            "tests/boxoffice/adapters/claims/test_redis_groups.py::test_a_part_that_was_lost_in_between_is_not_made_final",
        ),
    ),
    Mutant(
        "best seats that are taken",
        "best seats are free seats",
        "boxoffice/adapters/claims/lua/best.lua",
        ("        call('SET', KEYS[offset + 2], value, 'PX', px)\n        states[offset] = 1\n"),
        "        call('SET', KEYS[offset + 2], value, 'PX', px)\n",
        ("tests/contracts/test_seat_claims.py::test_contract[a_crowd_for_the_best_two_does_not_collide-redis]",),
    ),
    Mutant(
        "best seats twice for one booking",
        "a repeated request gets its own seats",
        "boxoffice/adapters/claims/lua/best.lua",
        ("    local chosen = owned[mark]\n    if not chosen then"),
        ("    local chosen = nil\n    if not chosen then"),
        ("tests/contracts/test_seat_claims.py::test_contract[best_available_repeats_for_the_same_booking-redis]",),
    ),
    Mutant(
        "half a group is shown",
        "half a group is never seen",
        "boxoffice/adapters/claims/redis.py",
        "if taken.kind is not ClaimKind.TENTATIVE and taken.live(now_us):",
        "if taken.live(now_us):",
        (
            "tests/boxoffice/adapters/claims/test_redis_groups.py::test_a_tentative_part_keeps_others_out_and_is_shown_to_nobody",
        ),
    ),
    Mutant(
        "an older rebuild overtakes a newer one",
        "the newest rebuild wins",
        "boxoffice/adapters/claims/lua/rebuild.lua",
        "if is ~= 'r' .. text then return number or '0' end\n",
        "",
        ("tests/contracts/test_seat_claims.py::test_contract[a_later_rebuild_overtakes_an_abandoned_one-redis]",),
    ),
    Mutant(
        "a store that sells while it is filled",
        "a store refuses until it is filled",
        "boxoffice/adapters/claims/lua/rebuild.lua",
        "  redis.call('SET', KEYS[1], 'r' .. text)\n",
        "  redis.call('SET', KEYS[1], text)\n",
        ("tests/contracts/test_seat_claims.py::test_contract[a_rebuild_replaces_everything-redis]",),
    ),
    Mutant(
        "young claims released by recovery",
        "a claim on its way to the ledger stays",
        "boxoffice/holds/claim_recovery.py",
        "if seat.seat not in actual and seat.placed_at_us + WRITE_GRACE_US <= now_us",
        "if seat.seat not in actual",
        ("tests/boxoffice/holds/test_claim_recovery.py::test_drift_in_either_direction_is_mended",),
    ),
    Mutant(
        "sold seats that recovery forgets",
        "claims equal the ledger",
        "boxoffice/holds/claim_recovery.py",
        ("        if missing:\n            await self._claims.put(event_id, missing, now_us)\n"),
        "",
        ("tests/boxoffice/holds/test_claim_recovery.py::test_drift_in_either_direction_is_mended",),
    ),
    Mutant(
        "memory lets two claims be",
        "a seat has one claim",
        "boxoffice/adapters/claims/memory.py",
        ("            if current is not None and current.live(now_us):\n                conflicts.append(current)"),
        (
            "            if current is not None and current.live(now_us) and current.fan == claim.fan:\n"
            "                conflicts.append(current)"
        ),
        (
            "tests/contracts/test_seat_claims.py::test_contract[a_claimed_seat_is_refused_to_everybody_else_with_its_name-memory]",
        ),
    ),
)
