-- The limiter in PostgreSQL: one table of states, and the function `decide` that decides a batch of requests.
-- Same arithmetic as algorithms.py; tests/limits/test_differential.py compares them.
--
-- Everything is in one schema, whose name has the version. A change of the functions gets a new function name here, a
-- change of what a state looks like a new schema: servers of both versions then run side by side.
--
-- A quota slot q is 8 numbers:   kind, shadow, life in the table (µs), then
--   windows:  limit, period, grain, 0, 0          kinds 1 fixed_window, 2 sliding_log, 3 sliding_counter, 5 calendar month
--   buckets:  capacity, life, leak, unit, queue   kind 4
-- A state is an array. Empty: a key that was never seen.
--   1, 5: window start, count                     3: window start, previous count, current count
--   2: the time of every unit, oldest first       4: time, debt, unit, capacity [, total, since]
-- A verdict is an array: allowed, remaining, reset, retry, delay, 1 if the state changes, and then the new state.

SET LOCAL statement_timeout = '10s';
SELECT pg_advisory_xact_lock(5063714420861104);  -- of ten servers that start at once, one creates and the others wait
CREATE SCHEMA IF NOT EXISTS frontrow_limits_1;

-- Counts need not survive a crash of the server, so they are not written to its log. Half of each page is free for
-- updates in place, which need no work in the indexes.
CREATE UNLOGGED TABLE IF NOT EXISTS frontrow_limits_1.counts (
    key text COLLATE "C" PRIMARY KEY,
    state bigint[] NOT NULL,
    expires_us bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS counts_expiry ON frontrow_limits_1.counts (expires_us);

CREATE OR REPLACE FUNCTION frontrow_limits_1.month_start(now_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT extract(epoch FROM date_trunc('month', to_timestamp(now_us / 86400000000 * 86400) AT TIME ZONE 'UTC'))::bigint
        * 1000000
$$;

CREATE OR REPLACE FUNCTION frontrow_limits_1.judge_window(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    lim bigint := q[4]; period bigint := q[5]; start bigint; then_ bigint; units bigint := 0; moved boolean; reset bigint;
BEGIN
    start := CASE WHEN q[1] = 5 THEN frontrow_limits_1.month_start(now_us) ELSE now_us - now_us % period END;
    then_ := start;
    IF cardinality(s) = 2 THEN then_ := s[1]; units := s[2]; END IF;
    moved := then_ - start > period;
    IF then_ > start AND NOT moved THEN
        start := then_; now_us := then_;
    ELSIF then_ < start THEN
        units := 0;
    END IF;
    reset := CASE WHEN q[1] = 5 THEN frontrow_limits_1.month_start(start + period) ELSE start + period END - now_us;
    IF units + cost <= lim OR cost = 0 THEN
        units := units + cost;
        RETURN ARRAY[1, greatest(0, lim - units), CASE WHEN units > 0 THEN reset ELSE 0 END, 0, 0, 1, start, units];
    END IF;
    RETURN ARRAY[0, greatest(0, lim - units), reset, reset, 0, moved::int, start, units];
END $$;

CREATE OR REPLACE FUNCTION frontrow_limits_1.judge_counter(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    lim bigint := q[4]; period bigint := q[5]; grain bigint := q[6]; width bigint := q[5] / q[6];
    start bigint := now_us - now_us % period; then_ bigint; prev bigint := 0; cur bigint := 0; moved boolean;
    before bigint; used bigint; remaining bigint; room bigint; opens bigint; reset bigint;
BEGIN
    then_ := start;
    IF cardinality(s) = 3 THEN then_ := s[1]; prev := s[2]; cur := s[3]; END IF;
    moved := then_ - start > 2 * period;
    IF then_ > start AND NOT moved THEN
        start := then_; now_us := then_;
    ELSIF then_ < start THEN
        prev := CASE WHEN start - then_ = period THEN cur ELSE 0 END; cur := 0;
    END IF;
    before := least(prev, lim); used := least(cur, lim);
    remaining := greatest(0, (lim * width - before * (width - (now_us - start) / grain)) / width - used);
    IF cost <= remaining THEN
        cur := cur + cost;
        reset := CASE WHEN cur > 0 THEN 2 * period - now_us + start WHEN prev > 0 THEN period - now_us + start ELSE 0 END;
        RETURN ARRAY[1, remaining - cost, reset, 0, 0, 1, start, prev, cur];
    END IF;
    room := lim - used - cost;
    IF room >= 0 THEN
        opens := width - room * width / before;
    ELSE
        opens := 2 * width - (lim - cost) * width / used;
    END IF;
    reset := CASE WHEN cur > 0 THEN 2 * period - now_us + start WHEN prev > 0 THEN period - now_us + start ELSE 0 END;
    RETURN ARRAY[0, remaining, reset, start + opens * grain - now_us, 0, moved::int, start, prev, cur];
END $$;

CREATE OR REPLACE FUNCTION frontrow_limits_1.judge_log(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    lim bigint := q[4]; period bigint := q[5]; n int := cardinality(s); back bigint := 0; moved boolean;
    low int := 1; high int; middle int; remaining bigint; reset bigint := 0;
BEGIN
    IF n > 0 THEN back := s[n] - now_us; END IF;
    moved := back > period;
    IF moved THEN
        s := ARRAY(SELECT t - back FROM unnest(s) WITH ORDINALITY AS u (t, at) ORDER BY at);
    ELSIF back > 0 THEN
        now_us := now_us + back;
    END IF;
    high := n + 1;  -- the first time that is inside the window, or the end
    WHILE low < high LOOP
        middle := (low + high) / 2;
        IF s[middle] <= now_us - period THEN low := middle + 1; ELSE high := middle; END IF;
    END LOOP;
    IF low > 1 THEN s := s[low:]; n := n - low + 1; END IF;
    remaining := lim - n;
    IF cost <= remaining OR cost = 0 THEN
        IF cost > 0 THEN
            s := CASE WHEN cost = 1 THEN s || now_us ELSE s || array_fill(now_us, ARRAY[cost::int]) END;
            reset := period;
        ELSIF n > 0 THEN
            reset := s[n] + period - now_us;
        END IF;
        RETURN ARRAY[1, greatest(0, remaining - cost), reset, 0, 0, 1] || s;
    END IF;
    RETURN ARRAY[0, greatest(0, remaining), s[n] + period - now_us, s[cost - remaining] + period - now_us, 0, moved::int]
        || s;
END $$;

-- A weight in 2^20 parts of a unit, rounded down or up
CREATE OR REPLACE FUNCTION frontrow_limits_1.parts(weight bigint, unit bigint, up boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT least(weight / unit, 4294967296) * 1048576
        + CASE WHEN up THEN ceil((weight % unit)::float8 / unit::float8 * 1048576::float8)
               ELSE floor((weight % unit)::float8 / unit::float8 * 1048576::float8) END::bigint
$$;

-- What of a bucket's total is left after some time
CREATE OR REPLACE FUNCTION frontrow_limits_1.total_left(q bigint[], total bigint, elapsed_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT total - frontrow_limits_1.parts(least(elapsed_us, 9007199254740992 / q[6]) * q[6], q[7], false)
$$;

-- A bucket's state with its total, unless that says no more than the debt
CREATE OR REPLACE FUNCTION frontrow_limits_1.with_total(
    q bigint[], at_us bigint, owed bigint, total bigint, since_us bigint
) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    remaining bigint := frontrow_limits_1.total_left(q, total, at_us - since_us);
BEGIN
    IF remaining <= frontrow_limits_1.parts(owed, q[7], false) THEN RETURN ARRAY[at_us, owed, q[7], q[4]]; END IF;
    IF total < 2251799813685248 THEN RETURN ARRAY[at_us, owed, q[7], q[4], total, since_us]; END IF;
    RETURN ARRAY[at_us, owed, q[7], q[4], remaining, at_us];
END $$;

-- What a bucket's state means under another quota: algorithms.carry_over
CREATE OR REPLACE FUNCTION frontrow_limits_1.carry_over(q bigint[], s bigint[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    capacity bigint := q[4]; unit bigint := q[7]; full_ bigint := q[4] * q[7]; has_total boolean := cardinality(s) = 6;
    whole bigint := s[2] / s[3]; part bigint := s[2] % s[3]; owed bigint := q[4] * q[7] + 1;
    total bigint := 0; since_us bigint := s[1]; remaining bigint;
BEGIN
    IF whole <= capacity THEN
        owed := whole * unit + least(unit, ceil(part::float8 / s[3]::float8 * unit::float8)::bigint);
    END IF;
    IF owed <= full_ AND NOT has_total THEN RETURN ARRAY[s[1], owed, unit, capacity]; END IF;
    IF has_total THEN total := s[5]; since_us := s[6]; END IF;
    IF owed > full_ THEN
        owed := full_; total := greatest(total, frontrow_limits_1.parts(s[2], s[3], true)); since_us := s[1];
    END IF;
    remaining := frontrow_limits_1.total_left(q, total, s[1] - since_us);
    IF remaining > 0 THEN
        whole := remaining / 1048576;
        IF whole >= capacity THEN
            owed := full_;
        ELSE
            part := ceil((remaining % 1048576)::float8 / 1048576::float8 * unit::float8)::bigint;
            owed := greatest(owed, least(full_, whole * unit + part));
        END IF;
    END IF;
    RETURN frontrow_limits_1.with_total(q, s[1], owed, total, since_us);
END $$;

CREATE OR REPLACE FUNCTION frontrow_limits_1.judge_bucket(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    leak bigint := q[6]; unit bigint := q[7]; full_ bigint := q[4] * q[7]; then_ bigint := now_us; debt bigint := 0;
    total bigint; since_us bigint; moved boolean; owed bigint; verdict bigint[]; allowed boolean; changed boolean;
BEGIN
    IF cardinality(s) >= 4 THEN
        IF s[3] <> unit OR s[4] <> q[4] THEN s := frontrow_limits_1.carry_over(q, s); END IF;
        then_ := s[1]; debt := s[2]; total := s[5]; since_us := s[6];
    END IF;
    moved := then_ - now_us > q[5];
    IF then_ > now_us AND NOT moved THEN
        now_us := then_;
    ELSIF then_ < now_us THEN
        debt := CASE WHEN debt / leak < now_us - then_ THEN 0 ELSE debt - (now_us - then_) * leak END;
    END IF;
    owed := debt + cost * unit;
    allowed := owed <= full_ OR cost = 0;
    changed := allowed OR moved;
    IF allowed THEN
        verdict := ARRAY[1, CASE WHEN owed > full_ THEN 0 ELSE (full_ - owed) / unit END, (owed + leak - 1) / leak, 0,
            CASE WHEN q[8] = 1 THEN (debt + leak - 1) / leak ELSE 0 END, 1];
    ELSE
        verdict := ARRAY[0, CASE WHEN debt > full_ THEN 0 ELSE (full_ - debt) / unit END, (debt + leak - 1) / leak,
            (owed - full_ + leak - 1) / leak, 0, moved::int];
        owed := debt;
    END IF;
    IF total IS NULL OR NOT changed THEN RETURN verdict || ARRAY[now_us, owed, unit, q[4]]; END IF;
    total := total + CASE WHEN allowed THEN cost * 1048576 ELSE 0 END;
    RETURN verdict || frontrow_limits_1.with_total(q, now_us, owed, total, since_us + least(0, now_us - then_));
END $$;

CREATE OR REPLACE FUNCTION frontrow_limits_1.judge(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF q[1] = 3 THEN RETURN frontrow_limits_1.judge_counter(q, s, now_us, cost); END IF;
    IF q[1] = 4 THEN RETURN frontrow_limits_1.judge_bucket(q, s, now_us, cost); END IF;
    IF q[1] = 2 THEN RETURN frontrow_limits_1.judge_log(q, s, now_us, cost); END IF;
    RETURN frontrow_limits_1.judge_window(q, s, now_us, cost);
END $$;

-- The state after units were returned: algorithms.return_units
CREATE OR REPLACE FUNCTION frontrow_limits_1.return_units(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF cardinality(s) = 0 THEN RETURN s; END IF;
    s := (frontrow_limits_1.judge(q, s, now_us, 0))[7:];
    CASE q[1]
        WHEN 2 THEN RETURN s[1:greatest(0, cardinality(s) - cost)];
        WHEN 3 THEN RETURN ARRAY[s[1], greatest(0, s[2] - greatest(0, cost - s[3])), greatest(0, s[3] - cost)];
        WHEN 4 THEN
            s[2] := greatest(0, s[2] - cost * q[7]);
            IF cardinality(s) = 6 THEN s[5] := greatest(0, s[5] - cost * 1048576); END IF;
            RETURN s;
        ELSE RETURN ARRAY[s[1], greatest(0, s[2] - cost)];
    END CASE;
END $$;

-- The state after units were charged whether or not they fit: algorithms.charge_units
CREATE OR REPLACE FUNCTION frontrow_limits_1.charge_units(q bigint[], s bigint[], now_us bigint, cost bigint)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    verdict bigint[] := frontrow_limits_1.judge(q, s, now_us, 0); full_ bigint := q[4] * q[7]; most bigint;
BEGIN
    IF q[1] <> 4 THEN
        RETURN (frontrow_limits_1.judge(q, s, now_us, least(cost, verdict[2])))[7:];
    END IF;
    s := verdict[7:];
    most := greatest(full_, least(2 * full_, 9007199254740992 - full_));
    s[2] := greatest(s[2], least(s[2] + least(cost, 2 * q[4]) * q[7], most));
    IF cardinality(s) = 6 THEN s[5] := s[5] + cost * 1048576; END IF;
    RETURN s;
END $$;

-- How long a state is kept after a change, in µs
CREATE OR REPLACE FUNCTION frontrow_limits_1.kept_us(q bigint[], s bigint[])
RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    life bigint := q[3]; remaining bigint;
BEGIN
    IF q[1] = 4 AND cardinality(s) >= 4 THEN
        IF s[2] > q[4] * q[7] THEN life := 2 * life; END IF;
        IF cardinality(s) = 6 THEN  -- until the total has drained at this rate, but not for more than 366 days
            remaining := greatest(0, frontrow_limits_1.total_left(q, s[5], s[1] - s[6]));
            life := greatest(life, least(31622400000000,
                q[3] + ceil(least(1e18, remaining::float8 / 1048576 * q[7] / q[6]))::bigint));
        END IF;
    END IF;
    RETURN life;
END $$;

-- Decides a batch of requests, each over several rules: all of them are charged, or none.
--
-- keys      the keys of all requests, each once, sorted: everybody locks rows in this order, so nobody waits in a circle
-- requests  numbers per request: op, cost, now_us (-1: this server's clock), number of rules, and per rule its key and slot
-- slots     8 numbers per slot
-- Result: 7 numbers per request: allowed, rule, remaining, reset, retry, delay, shadow bit mask
--
-- Every state is read once and written once. Each new key deletes up to two that have expired, so the table holds at
-- most twice what is in use, and nobody needs to clean it.
CREATE OR REPLACE FUNCTION frontrow_limits_1.decide(keys text[], requests bigint[], slots bigint[])
RETURNS bigint[] LANGUAGE plpgsql VOLATILE SET lock_timeout = '2s' AS $$
DECLARE
    key_count int := cardinality(keys); states text[]; expiries bigint[]; changed_by int[]; q bigint[]; s bigint[];
    expires bigint; found_rows int; created int := 0; writes boolean := false; server_now bigint;
    at int := 1; op bigint; cost bigint; asked bigint; now_us bigint; width int; r int; key_no int; verdict bigint[];
    verdicts text[]; refused boolean; mask bigint; chosen int; tightest bigint; delays bigint; judged boolean;
    reply bigint[] := '{}'; first bigint[]; kept bigint;
BEGIN
    WHILE at <= cardinality(requests) LOOP
        writes := writes OR requests[at] <> 1;
        at := at + 4 + 2 * requests[at + 3];
    END LOOP;
    FOR n IN 1..key_count LOOP
        changed_by[n] := 0;
        IF NOT writes THEN
            SELECT c.state, c.expires_us INTO s, expires FROM frontrow_limits_1.counts c WHERE c.key = keys[n];
        ELSE
            FOR tries IN 1..9 LOOP
                SELECT c.state, c.expires_us INTO s, expires FROM frontrow_limits_1.counts c WHERE c.key = keys[n] FOR UPDATE;
                EXIT WHEN FOUND;
                server_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
                INSERT INTO frontrow_limits_1.counts VALUES (keys[n], '{}', server_now + 60000000) ON CONFLICT DO NOTHING;
                GET DIAGNOSTICS found_rows = ROW_COUNT;
                IF found_rows = 1 THEN
                    s := '{}'; expires := 0; created := created + 1;
                    EXIT;
                END IF;
            END LOOP;
            IF expires IS NULL THEN RAISE EXCEPTION 'the state of % changes too often', keys[n]; END IF;
        END IF;
        states[n] := coalesce(s, '{}')::text; expiries[n] := coalesce(expires, 0);
        s := NULL; expires := NULL;
    END LOOP;
    server_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    at := 1;
    WHILE at <= cardinality(requests) LOOP
        op := requests[at]; cost := requests[at + 1]; now_us := requests[at + 2]; width := requests[at + 3];
        IF now_us < 0 THEN now_us := server_now; END IF;
        asked := CASE WHEN op < 2 THEN cost ELSE 1 END;
        refused := false; mask := 0; at := at + 4;
        FOR r IN 1..width LOOP
            key_no := requests[at + 2 * r - 2];
            q := slots[8 * requests[at + 2 * r - 1] - 7 : 8 * requests[at + 2 * r - 1]];
            s := states[key_no]::bigint[];
            IF op > 1 THEN
                s := CASE op WHEN 2 THEN frontrow_limits_1.return_units(q, s, now_us, cost)
                             WHEN 5 THEN frontrow_limits_1.charge_units(q, s, now_us, cost) ELSE '{}' END;
                states[key_no] := s::text; changed_by[key_no] := requests[at + 2 * r - 1];
            END IF;
            verdict := frontrow_limits_1.judge(q, s, now_us, asked);
            verdicts[r] := verdict::text;
            IF verdict[1] = 0 THEN
                IF q[2] = 1 THEN mask := mask + (1::bigint << (r - 1)); ELSE refused := true; END IF;
            END IF;
        END LOOP;
        chosen := 1; tightest := NULL; delays := 0; judged := false; first := NULL;
        FOR r IN 1..width LOOP
            key_no := requests[at + 2 * r - 2];
            q := slots[8 * requests[at + 2 * r - 1] - 7 : 8 * requests[at + 2 * r - 1]];
            verdict := verdicts[r]::bigint[];
            IF verdict[1] = 1 AND (refused OR op <> 0) THEN  -- report the state as it is, uncharged
                s := frontrow_limits_1.judge(q, states[key_no]::bigint[], now_us, 0);
                verdict[2] := s[2]; verdict[3] := s[3];
            ELSIF op = 0 AND verdict[6] = 1 THEN
                states[key_no] := verdict[7:]::text; changed_by[key_no] := requests[at + 2 * r - 1];
            END IF;
            IF first IS NULL THEN first := verdict; END IF;
            IF q[2] <> 1 THEN
                judged := true;
                IF NOT refused THEN
                    IF tightest IS NULL OR verdict[2] < tightest THEN
                        chosen := r; tightest := verdict[2]; first := verdict;
                    END IF;
                    delays := greatest(delays, verdict[5]);
                ELSIF verdict[1] = 0 AND (tightest IS NULL OR verdict[4] > tightest) THEN
                    chosen := r; tightest := verdict[4]; first := verdict;
                END IF;
            END IF;
        END LOOP;
        reply := reply || ARRAY[1 - refused::int, chosen, first[2], first[3], CASE WHEN judged THEN first[4] ELSE 0 END,
            CASE WHEN refused THEN 0 ELSE delays END, mask];
        at := at + 2 * width;
    END LOOP;
    FOR n IN 1..key_count LOOP
        IF changed_by[n] > 0 THEN
            q := slots[8 * changed_by[n] - 7 : 8 * changed_by[n]];
            s := states[n]::bigint[];
            kept := frontrow_limits_1.kept_us(q, s);
            IF expiries[n] >= server_now + kept THEN  -- the expiry stays, so no index changes
                UPDATE frontrow_limits_1.counts c SET state = s WHERE c.key = keys[n];
            ELSE
                UPDATE frontrow_limits_1.counts c SET state = s, expires_us = server_now + 2 * kept WHERE c.key = keys[n];
            END IF;
        END IF;
    END LOOP;
    IF created > 0 THEN
        DELETE FROM frontrow_limits_1.counts c WHERE c.key = ANY (ARRAY(
            SELECT old.key FROM frontrow_limits_1.counts old WHERE old.expires_us < server_now
            ORDER BY old.expires_us LIMIT 2 * created FOR UPDATE SKIP LOCKED));
    END IF;
    RETURN reply;
END $$;
