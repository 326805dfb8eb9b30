"""L11, L12: the fields of an answer, read back by parsers that other people wrote."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError
from frontrow.limits.http.headers import DIALECTS, HeaderBuilder, QuotaPolicy, quoted
from frontrow.limits.http.refusal_responses import refusal_response
from frontrow.limits.quota import Decision, Quota

ROOT = Path(__file__).parents[2]
POLICIES = [QuotaPolicy.of("burst", Quota.parse("100/minute")), QuotaPolicy.of("daily", Quota.parse("9000/day"))]
ALLOWED = Decision(True, "burst", 100, 50, 29_000_001, 0)
REFUSED = Decision(False, "daily", 9000, 0, 86_000_000_000, 12_000_001)
NOW_US = 1_700_000_000_500_000


def fields(decision: Decision, **options: str) -> dict[str, str]:
    made = HeaderBuilder(POLICIES, wall_ns=lambda: NOW_US * 1000, **options).of(decision)
    return {name.decode(): value.decode() for name, value in made}


def node(script: str, given: object) -> object:
    """Run a module script in Node with the tests' npm packages; `given` arrives as JSON on stdin."""
    command = [str(ROOT / ".venv/bin/node"), "--input-type=module", "--eval", script]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, cwd=ROOT / "tests/node", timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PARSE = """
import { parseRateLimit } from 'ratelimit-header-parser';
import { readFileSync } from 'node:fs';
const answers = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(answers.map((headers) => parseRateLimit(headers))));
"""


def test_l12_a_third_partys_parser_reads_the_ietf_fields_of_drafts_07_and_06_and_the_x_fields():
    dialects = ("draft-07", "draft-06", "none")
    answers = [fields(ALLOWED, dialect=dialect, reset="delta") for dialect in dialects]
    answers.append(fields(ALLOWED, dialect="none", reset="epoch"))
    before = time.time()
    read = node(PARSE, answers)
    for parsed in read[:3]:
        assert (parsed["limit"], parsed["remaining"], parsed["used"]) == (100, 50, 50)
        reset = time.mktime(time.strptime(parsed["reset"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        assert before + 28 <= reset <= time.time() + 31
    assert read[3]["reset"] == "2023-11-14T22:13:50.000Z"


PARSE_STRUCTURED = """
import { parseList } from 'structured-headers';
import { readFileSync } from 'node:fs';
const answers = JSON.parse(readFileSync(0, 'utf8'));
const plain = (field) => parseList(field).map(([name, params]) => [name, Object.fromEntries(params)]);
const both = (headers) => [plain(headers['ratelimit']), plain(headers['ratelimit-policy'])];
console.log(JSON.stringify(answers.map(both)));
"""


def test_l12_a_third_partys_structured_field_parser_reads_the_current_draft():
    [[parsed, policies], [refusal, _]] = node(PARSE_STRUCTURED, [fields(ALLOWED), fields(REFUSED)])
    assert parsed == [["burst", {"r": 50, "t": 30}]]
    assert refusal == [["daily", {"r": 0, "t": 13}]]
    assert policies == [["burst", {"q": 100, "w": 60}], ["daily", {"q": 9000, "w": 86400}]]


def test_l12_a_buckets_policy_is_its_burst_over_the_time_that_takes_to_come_back():
    assert QuotaPolicy.of("b", Quota.parse("10/second", algorithm="token_bucket", burst=25)) == QuotaPolicy("b", 25, 3)


def test_l12_the_fields_of_the_current_draft_are_exactly_these():
    assert fields(ALLOWED) == {
        "x-ratelimit-limit": "100",
        "x-ratelimit-remaining": "50",
        "x-ratelimit-reset": "1700000030",
        "ratelimit": '"burst";r=50;t=30',
        "ratelimit-policy": '"burst";q=100;w=60, "daily";q=9000;w=86400',
    }
    assert fields(REFUSED, reset="delta")["ratelimit"] == '"daily";r=0;t=13', "t ends when Retry-After does"
    assert fields(REFUSED, reset="delta")["x-ratelimit-reset"] == "86000"


def test_l12_the_older_dialects_are_exactly_these():
    assert fields(ALLOWED, dialect="draft-07")["ratelimit"] == "limit=100, remaining=50, reset=30"
    assert fields(ALLOWED, dialect="draft-07")["ratelimit-policy"] == "100;w=60, 9000;w=86400"
    older = fields(ALLOWED, dialect="draft-06")
    assert [older[f"ratelimit-{part}"] for part in ("limit", "remaining", "reset")] == ["100", "50", "30"]
    assert not any(name.startswith("ratelimit") for name in fields(ALLOWED, dialect="none"))


@pytest.mark.parametrize(
    ("us", "wait_s"), [(1, b"1"), (999_999, b"1"), (1_000_000, b"1"), (1_000_001, b"2"), (0, b"1")]
)
def test_l12_retry_after_is_rounded_up_and_never_zero(us, wait_s):
    _, head, body = refusal_response(REFUSED._replace(retry_after_us=us), [])
    assert dict(head)[b"retry-after"] == wait_s
    assert f"in {wait_s.decode()} s" in json.loads(body)["detail"]


@given(
    st.integers(1, 2**31),
    st.integers(0, 2**31),
    st.integers(0, 10**15),
    st.integers(0, 10**15),
    st.sampled_from(DIALECTS),
    st.sampled_from(["epoch", "delta"]),
)
def test_l12_numbers_of_any_size_come_out_as_whole_seconds_never_early(limit, left, reset, retry, dialect, style):
    made = HeaderBuilder([QuotaPolicy("daily", limit, 60)], wall_ns=lambda: NOW_US * 1000, dialect=dialect, reset=style)
    answer = made.of(Decision(not retry, "daily", limit, left, reset, retry))
    parsed = {name.decode(): value.decode() for name, value in answer}
    assert (parsed["x-ratelimit-limit"], parsed["x-ratelimit-remaining"]) == (str(limit), str(left))
    base = NOW_US if style == "epoch" else 0
    assert base + reset <= int(parsed["x-ratelimit-reset"]) * 1_000_000 < base + reset + 1_000_000


def test_l12_a_refusals_body_is_problem_json_with_the_violated_policy():
    status, head, raw = refusal_response(REFUSED, [])
    body = json.loads(raw)
    assert (status, dict(head)[b"content-type"]) == (429, b"application/problem+json")
    assert int(dict(head)[b"content-length"]) == len(raw)
    assert body["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (body["status"], body["violated-policies"]) == (429, ["daily"])
    assert "13 s" in body["detail"]


def test_l14_a_rule_that_fails_closed_answers_503_with_reduced_capacity():
    status, head, raw = refusal_response(REFUSED._replace(source="closed"), [])
    body = json.loads(raw)
    assert (status, body["status"], body["violated-policies"]) == (503, 503, ["daily"])
    assert body["type"] == "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    assert dict(head)[b"retry-after"] == b"13"


def test_l12_a_name_cannot_break_out_of_its_field():
    assert quoted('a"b\\c\r\nd') == b'"a\\"b\\\\c??d"'


def test_l15_an_unknown_dialect_or_reset_is_an_error_with_the_valid_ones():
    with pytest.raises(ConfigError, match="dialect must be one of draft-11, draft-07, draft-06, none, not 'draft-99'"):
        HeaderBuilder(POLICIES, dialect="draft-99")
    with pytest.raises(ConfigError, match="reset must be one of epoch, delta, not 'seconds'"):
        HeaderBuilder(POLICIES, reset="seconds")
