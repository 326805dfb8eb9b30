"""L15, L16: configuration from a file and the environment; what is wrong is one sentence that names the field."""

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits.config import load_config
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.quota import Quota
from frontrow.limits.rules import RequestRule, RuleBook
from tests.limits.limited_apps import call_asgi, starlette_app

GOOD = """
[limits]
store = "memory://"
trusted_proxies = ["127.0.0.1"]
dialect = "draft-07"
reset = "delta"

[limits.identify]
user = "header:x-user-id"

[[limits.rules]]
name = "holds"
quota = "2/minute"
algorithm = "token_bucket"
burst = 3
key = ["user"]
methods = ["POST"]
paths = ["/events/{event}/holds"]
tiers = { vip = "100/minute" }
on_store_down = "closed"
on_missing = "ip"

[[limits.rules]]
name = "everything"
quota = "1000/second"
key = []
except_paths = ["/health"]
shadow = true
"""


def config(tmp_path, text=GOOD, **env):
    file = tmp_path / "limits.toml"
    file.write_text(text)
    return load_config(file, env=env)


def test_a_misspelt_variable_is_refused_with_the_nearest_setting(tmp_path, monkeypatch):
    """It was ignored in silence, and the limits did something else than was meant."""
    with pytest.raises(ConfigError, match=r"^FRONTROW_LIMITS_DIALEKT is not a setting.*mean FRONTROW_LIMITS_DIALECT"):
        config(tmp_path, FRONTROW_LIMITS_DIALEKT="none")
    file = tmp_path / "limits.toml"
    file.write_text(GOOD)
    monkeypatch.setenv("FRONTROW_LIMITS_FILE", str(file))
    assert load_config().settings.dialect == "draft-07"


def test_l16_a_file_says_everything_about_a_rule(tmp_path):
    made = config(tmp_path)
    holds, everything = made.book.current.rules
    assert (holds.name, holds.quota.limit, holds.quota.burst, holds.quota.algorithm) == ("holds", 2, 3, "token_bucket")
    assert (holds.key, holds.methods, holds.paths) == (("user",), ("POST",), ("/events/{event}/holds",))
    assert (holds.tiers["vip"].limit, holds.on_store_down, holds.on_missing) == (100, "closed", "ip")
    assert (everything.key, everything.shadow, everything.except_paths) == ((), True, ("/health",))
    assert (made.settings.dialect, made.settings.trusted_proxies) == ("draft-07", ("127.0.0.1",))
    assert made.identify == {"user": "header:x-user-id"}


def test_l16_the_environment_wins_over_the_file_for_settings_and_single_fields_of_rules(tmp_path):
    made = config(
        tmp_path,
        FRONTROW_LIMITS_DEADLINE_MS="40",
        FRONTROW_LIMITS_STORE="redis://127.0.0.1:1/0",
        FRONTROW_LIMITS_RULE_HOLDS_QUOTA="7/hour",
        FRONTROW_LIMITS_RULE_HOLDS_METHODS="GET, POST",
        FRONTROW_LIMITS_RULE_EVERYTHING_SHADOW="false",
    )
    holds, everything = made.book.current.rules
    assert (made.settings.deadline_ms, made.settings.store) == (40.0, "redis://127.0.0.1:1/0")
    assert (holds.quota.limit, holds.quota.period_s, holds.methods) == (7, 3600, ("GET", "POST"))
    assert everything.shadow is False


def test_l16_exemptions_counted_statuses_and_body_keys_stand_in_the_file(tmp_path):
    text = """
[limits]
exempt_addresses = ["10.0.0.0/8"]
exempt_users = ["staff"]
exempt_paths = ["/health"]
count_preflights = true
max_body_bytes = 1000
[limits.identify]
email = "json:user.email"
[[limits.rules]]
name = "tries"
quota = "2/minute"
key = ["email"]
statuses = [401, 403]
"""
    made = config(tmp_path, text, FRONTROW_LIMITS_RULE_TRIES_STATUSES="401, 429")
    assert made.book.current.rules[0].statuses == (401, 429)
    options = made.middleware_options()
    assert (options["exempt_addresses"], options["exempt_users"]) == (("10.0.0.0/8",), ("staff",))
    assert (options["count_preflights"], options["max_body_bytes"]) == (True, 1000)
    RateLimitMiddleware(starlette_app([]), **options)


def test_l16_a_rule_may_have_several_quotas_in_one_text(tmp_path):
    text = '[[limits.rules]]\nname = "api"\nquota = "1/s; 100/h"\ntiers = { vip = "10/s burst 20; 1000/h" }\n'
    second, hour = config(tmp_path, text).book.current.rules
    assert (second.name, second.quota, second.tiers["vip"]) == (
        "api-1",
        Quota.parse("1/s"),
        Quota.parse("10/s", algorithm="token_bucket", burst=20),
    )
    assert (hour.name, hour.quota, hour.tiers["vip"]) == ("api-2", Quota.parse("100/h"), Quota.parse("1000/h"))
    [only] = config(tmp_path, text.split("tiers")[0], FRONTROW_LIMITS_RULE_API_QUOTA="5/250ms").book.current.rules
    assert (only.name, only.quota) == ("api", Quota.parse("5/250ms"))
    with pytest.raises(ConfigError, match=r"tiers\.vip needs as many quotas as the rule: 2, not 1"):
        config(tmp_path, text.replace("; 1000/h", ""))


def test_l16_the_file_itself_may_be_named_by_the_environment(tmp_path):
    (tmp_path / "x.toml").write_text(GOOD)
    assert load_config(env={"FRONTROW_LIMITS_FILE": str(tmp_path / "x.toml")}).settings.reset == "delta"
    with pytest.raises(ConfigError, match=r"FRONTROW_LIMITS_FILE=limits\.toml"):
        load_config(env={})


WRONG = {
    'quota = "ten/minute"': ("quota", "like 10/minute"),
    'quota = "0/minute"': ("limit", "from 1"),
    'quota = "-5/minute"': ("limit", "from 1"),
    'quota = "5/fortnight"': ("quota", '"100/minute"'),
    "quota = 5": ("quota", 'quota = "10/minute"'),
    'quota = "2/minute"\nalgorithm = "magic"': ("algorithm", "token_bucket"),
    'quota = "2/minute"\nalgorithm = "token_bucket"\nburst = 0': ("burst", "from 1"),
    'quota = "2/minute"\nburst = "many"': ("burst", "burst = 20"),
    'quota = "2/minute"\nmethods = ["GRAB"]': ("methods", "'GET', 'POST'"),
    'quota = "2/minute"\npaths = ["holds"]': ("paths", "/events/{event}/holds"),
    'quota = "2/minute"\nkey = "user"': ("key", '["user", "endpoint"]'),
    'quota = "2/minute"\nkey = [""]': ("key", "['user', 'endpoint']"),
    'quota = "2/minute"\non_store_down = "pray"': ("on_store_down", "open, closed, local"),
    'quota = "2/minute"\non_missing = "skip"': ("on_missing", "error, ip"),
    'quota = "2/minute"\ntiers = { vip = "lots" }': ("tiers.vip", '"100/minute"'),
    'quota = "2/minute"\nqouta = "3/minute"': ("qouta", "known: name, quota"),
    "paths = []": ("quota is missing", 'quota = "10/minute"'),
}


@pytest.mark.parametrize("line", WRONG, ids=[line.replace("\n", "; ") for line in WRONG])
def test_l15_a_wrong_field_is_named_with_a_valid_example(line, tmp_path):
    named, example = WRONG[line]
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, f'[[limits.rules]]\nname = "holds"\n{line}\n')
    assert named in caught.value.message
    assert example in caught.value.message
    assert "limits.rules[0]" in caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[limits]\n", r"limits\.rules is missing; add \[\[limits\.rules\]\]"),
        ("nonsense", "not valid TOML"),
        ('[limits]\ncolour = "red"\n[[limits.rules]]\nname="a"\nquota="1/s"', "limits.colour is not a setting"),
        ('[limits]\ndialect = "x"\n[[limits.rules]]\nname="a"\nquota="1/s"', "limits.dialect must be one of draft-11"),
        ('[limits]\nidentify = {user="cookie"}\n[[limits.rules]]\nname="a"\nquota="1/s"', 'user = "header:x-user-id"'),
        ('[[limits.rules]]\nname="a"\nquota="1/s"\n' * 2, "two rules are named 'a'"),
        ('[[limits.rules]]\nname="no spaces"\nquota="1/s"', "name is 1 to 64 letters"),
        ("limits = { rules = [1] }", "must be a table with name and quota"),
    ],
)
def test_l15_a_wrong_file_is_one_clear_sentence(text, expected, tmp_path):
    with pytest.raises(ConfigError, match=expected):
        config(tmp_path, text)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("FRONTROW_LIMITS_RULE_HOLD_QUOTA", "1/s", "FRONTROW_LIMITS_RULE_HOLDS_QUOTA"),
        ("FRONTROW_LIMITS_RULE_HOLDS_COLOUR", "red", "fits no rule or field"),
        ("FRONTROW_LIMITS_RULE_HOLDS_SHADOW", "perhaps", "must be like true, not 'perhaps'"),
        ("FRONTROW_LIMITS_RULE_HOLDS_BURST", "many", "must be like 20, not 'many'"),
        ("FRONTROW_LIMITS_DEADLINE_MS", "0", "FRONTROW_LIMITS_DEADLINE_MS must be from 1.0 to 10000.0"),
    ],
)
def test_l15_a_wrong_variable_is_named(variable, value, expected, tmp_path):
    with pytest.raises(ConfigError, match=expected):
        config(tmp_path, **{variable: value})


async def test_l16_a_running_middleware_reloads_its_file_and_a_broken_one_leaves_the_old_rules(tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text('[limits]\n[[limits.rules]]\nname = "all"\nquota = "1/hour"\n')
    app = RateLimitMiddleware.from_config(starlette_app([]), file)
    ask = lambda: call_asgi(app, "GET", "/", {}, "203.0.113.1")  # noqa: E731
    assert [(await ask()).status for _ in range(2)] == [200, 429]
    file.write_text('[limits]\n[[limits.rules]]\nname = "all"\nquota = "many/hour"\n')
    with pytest.raises(ConfigError, match="many/hour"):
        app.limits.book.reload()
    assert (await ask()).status == 429
    file.write_text('[limits]\n[[limits.rules]]\nname = "all"\nquota = "3/hour"\n')
    app.limits.book.reload()
    assert [(await ask()).status for _ in range(4)] == [200, 200, 200, 429]
    assert app.limits.book.generation == 1


def test_l15_rules_made_in_code_cannot_be_reloaded_and_say_what_to_do():
    from frontrow.limits import Quota

    with pytest.raises(ConfigError, match=r"use replace\(rules\)"):
        RuleBook([RequestRule("a", Quota.parse("1/second"))]).reload()
