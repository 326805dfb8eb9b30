"""The waiting room: order, capacity and rate."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a second place in another lane",
        "a person has one place",
        "waitingroom/stores/lua/join.lua",
        ("    for lane = 0, lanes - 1 do\n      local score"),
        ("    for lane = 0, 0 do\n      local score"),
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w8_who_has_a_place_in_one_lane_gets_none_in_another[redis]",
        ),
    ),
    Mutant(
        "a slide before its audit row",
        "positions never get worse",
        "waitingroom/service/leader.py",
        (
            "            await self._audit.append(event, [RoomRow(apply_plan(state, plan), state.now_us)])\n"
            "        result = await self._store.slide(event, self.owner, plan)\n"
        ),
        (
            "            result = await self._store.slide(event, self.owner, plan)\n"
            "            await self._audit.append(event, [RoomRow(apply_plan(state, plan), state.now_us)])\n"
            "        else:\n"
            "            result = await self._store.slide(event, self.owner, plan)\n"
        ),
        ("tests/waitingroom/service/test_leader_gap.py::test_w13_nobody_is_admitted_before_the_audit_has_the_slide",),
    ),
    Mutant(
        "a window that fell counts as newer by its slide number",
        "positions never get worse",
        "waitingroom/service/recovery.py",
        "state.slide_no < seen.slide_no or fewer or windows_fell(state, seen)",
        "state.slide_no < seen.slide_no or fewer",
        ("tests/waitingroom/service/test_room_cache.py::test_a_window_that_fell_is_not_shown_whatever_its_slide",),
    ),
    Mutant(
        "a new leader believes a store that lost slides",
        "positions never get worse",
        "waitingroom/service/leader.py",
        "        if leads and event not in self._led:\n            lost",
        "        if False:\n            lost",
        (
            "tests/waitingroom/service/test_recovery.py::test_f7_a_new_leader_whose_store_lost_slides_does_not_move_the_window_a_second_time",
        ),
    ),
    Mutant(
        "two leaders slide once each",
        "a slide is made once",
        "waitingroom/stores/lua/slide.lua",
        "if get('slide_no') ~= tonumber(ARGV[3]) or redis.call('HGET', room, 'phase') ~= 'open' then return 'changed' end\n",
        "",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w4_a_stale_early_or_impossible_plan_moves_nothing[redis]",
        ),
    ),
    Mutant(
        "a slide before its time",
        "admitted at most at the rate",
        "waitingroom/stores/lua/slide.lua",
        "if due < 1 or now < slid_at + due * interval then return 'not_due' end\n",
        "",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w4_a_stale_early_or_impossible_plan_moves_nothing[redis]",
        ),
    ),
    Mutant(
        "more inside than fit",
        "admitted at most the capacity",
        "waitingroom/stores/lua/visit.lua",
        "  if get('active') >= capacity then",
        "  if get('active') > capacity then",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w6_active_never_exceeds_capacity_and_a_returned_pass_frees_it_at_once[redis]",
        ),
    ),
    Mutant(
        "a pass claimed twice",
        "a place gives one pass",
        "waitingroom/stores/lua/visit.lua",
        ("    return {'already', 0, 0, 0, 0}\n  end\n  if ask.position"),
        ("  end\n  if ask.position"),
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w7_a_hundred_parallel_claims_are_one_pass[redis]",
        ),
    ),
    Mutant(
        "an expired place comes in",
        "an expired place is over",
        "waitingroom/stores/lua/visit.lua",
        "  if ask.position <= get('l' .. ask.lane) and not knocking then return {'expired', 0, 0, 0, 0} end\n",
        "",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w2_only_active_places_can_be_claimed[redis]",
        ),
    ),
    Mutant(
        "a code used twice",
        "a code gives one place",
        "waitingroom/stores/lua/join.lua",
        ("    elseif code ~= '0' and redis.call('SADD', KEYS[2], code) == 0 then\n      answer = {'used'}\n"),
        "",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w12_fifty_callers_with_one_code_are_one_winner[redis]",
        ),
    ),
    Mutant(
        "a store that is behind issues places",
        "positions never get worse",
        "waitingroom/stores/lua/count_join.lua",
        "if not got[1] or behind() then return ROOMLESS end",
        "if not got[1] then return ROOMLESS end",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w13_a_store_that_is_behind_what_was_seen_issues_nothing[redis]",
        ),
    ),
    Mutant(
        "counters that fall",
        "positions never get worse",
        "waitingroom/stores/lua/lift.lua",
        "  if tonumber(ARGV[i]) > get(field) then redis.call",
        "  if tonumber(ARGV[i]) > 0 then redis.call",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_w13_lifting_raises_counters_and_never_lowers_them[redis]",
        ),
    ),
    Mutant(
        "a rebuilt room with the old epoch",
        "a place that was issued twice is two places",
        "waitingroom/service/recovery.py",
        "epoch = max(base.epoch, seen.epoch if seen else 0) + 1",
        "epoch = max(base.epoch, seen.epoch if seen else 0)",
        ("tests/waitingroom/service/test_recovery.py::test_w13_f1_redis_lost_mid_sale[sqlite-flushed]",),
    ),
    Mutant(
        "an older state over a newer one in the audit",
        "positions never get worse",
        "waitingroom/audit/sql_audit.py",
        (
            '    " WHERE excluded.epoch > room_state.epoch"\n'
            '    " OR (excluded.epoch = room_state.epoch AND excluded.at_us >= room_state.at_us)"\n'
        ),
        "",
        (
            "tests/waitingroom/audit/test_audit.py::TestAudits::test_w13_counters_come_back_at_the_highest_any_row_saw[sqlite]",
        ),
    ),
    Mutant(
        "a grace that ends a moment late",
        "intervals are half-open",
        "waitingroom/model/window.py",
        "        if slide.at_us + grace_us <= now_us:",
        "        if slide.at_us + grace_us < now_us:",
        ("tests/waitingroom/model/test_window.py::test_w2_by_time_a_slide_is_active_until_exactly_its_grace",),
    ),
    Mutant(
        "a crowd after a gap",
        "admitted at most at the rate",
        "waitingroom/model/admission.py",
        "slide_bounds(state, measured, min(due, config.most_windows)).admit",
        "slide_bounds(state, measured, due).admit",
        (
            "tests/waitingroom/model/test_admission.py::test_w3_nothing_is_due_before_the_interval_and_one_window_after_many",
        ),
    ),
    Mutant(
        "an idle visit ends though nobody waits",
        "an idle visit ends only for somebody",
        "waitingroom/model/room_state.py",
        "        return self.phase is Phase.OPEN and bool(self.knocking or any(lane.waiting for lane in self.lanes))",
        "        return True",
        (
            "tests/waitingroom/model/test_room_state.py::test_a_place_in_the_shop_is_wanted_while_somebody_could_come_in",
        ),
    ),
    Mutant(
        "slides of a count that are merged",
        "by count each slide is one of the last",
        "waitingroom/model/admission.py",
        "grace_us=0 if config.active_windows else grace_us)",
        "grace_us=grace_us)",
        (
            "tests/waitingroom/model/test_slide_plans.py::test_w2_by_count_no_slide_is_merged_and_the_lower_edge_follows_at_once",
        ),
    ),
    Mutant(
        "a hand-over is exchanged twice",
        "a copied URL admits nobody twice",
        "waitingroom/stores/lua/visit.lua",
        "if redis.call('ZADD', KEYS[9], 'NX', int(ask.till), ask.hold) == 0 then return 'already' end",
        "redis.call('ZADD', KEYS[9], 'NX', int(ask.till), ask.hold)",
        (
            "tests/waitingroom/stores/test_store_contract.py::TestStores::test_a_hand_over_is_exchanged_once_by_fifty_who_try_at_once[redis]",
        ),
    ),
    Mutant(
        "a hand-over for any browser",
        "a copied URL admits nobody",
        "waitingroom/service/hand_overs.py",
        "        if not fits(verifier, given.bind):\n",
        "        if not verifier:\n",
        (
            "tests/web/room/test_hand_overs.py::test_a_copied_url_is_of_no_use_without_the_verifier_and_is_not_used_up_by_it",
        ),
    ),
    Mutant(
        "a connector leads to another site",
        "no open redirect",
        "waitingroom/protect/connector.py",
        'return Decision("strip", location=wanted(page))',
        'return Decision("strip", location=page)',
        ("tests/shop_connectors/test_vectors.py::test_the_checked_in_vectors_are_those_of_the_reference",),
    ),
    Mutant(
        "a pass of another shop is good",
        "a pass is for one shop",
        "waitingroom/protect/connector.py",
        'if claims["shop"] != setup.shop or claims["aud"]',
        'if claims["aud"]',
        ("tests/shop_connectors/test_vectors.py::test_the_checked_in_vectors_are_those_of_the_reference",),
    ),
)
