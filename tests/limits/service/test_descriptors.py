"""O7: descriptors and domains: reading them, and which limit a descriptor finds."""

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits_service.descriptor_files import read_domains, read_yaml_files
from frontrow.limits_service.descriptors import Wildcard, rule_name

SECOND = {"unit": "second", "requests_per_unit": 1}
ITSELF = SECOND | {"name": "n", "replaces": [{"name": "n"}]}


def domains(*descriptors, domain="d"):
    return read_domains([({"domain": domain, "descriptors": list(descriptors)}, "test")])


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("value*", ["value", "value1", "valueXYZ"], ["valu", "xvalue"]),
        ("/api/*/action", ["/api/123/action", "/api/a/b/action"], ["/api/123/other", "/api/action"]),
        ("/api/*/resource/*/action", ["/api/v1/resource/123/action"], ["/api/v1/resource/action", "/api//action"]),
        ("a*a", ["aa", "aba"], ["a", "ab"]),
        ("*", ["", "anything"], []),
        ("**x", ["x", "yx"], ["xy"]),
    ],
)
def test_a_star_stands_for_any_characters(pattern, fitting, other):
    wildcard = Wildcard.of(pattern)
    assert all(wildcard.fits(value) for value in fitting)
    assert not any(wildcard.fits(value) for value in other)


def test_a_hostile_value_is_matched_in_little_time():
    assert not Wildcard.of("*a" * 50 + "b").fits("a" * 1000), "a regular expression would try every split"


def test_the_exact_value_wins_then_a_pattern_then_the_key_alone():
    found = domains(
        {"key": "k", "rate_limit": SECOND | {"name": "any"}},
        {"key": "k", "value": "v*", "rate_limit": SECOND | {"name": "pattern"}},
        {"key": "k", "value": "v1", "rate_limit": SECOND | {"name": "exact"}},
    )
    names = [found.find("d", [("k", value)]).limit.name for value in ("v1", "v2", "w")]
    assert names == ["exact", "pattern", "any"]


def test_different_entries_never_share_a_key():
    found = domains({"key": "a", "descriptors": [{"key": "b", "rate_limit": SECOND}]})
    keys = {found.find("d", [("a", x), ("b", y)]).key for x, y in (("1", "23"), ("12", "3"), ("1:b", "23"))}
    assert len(keys) == 3


def test_names_of_rules_are_short_plain_and_unique():
    assert rule_name("edge", [("ip", ""), ("path", "x")]) == "edge.ip.path_x"
    odd = {rule_name("edge", [("path", value)]) for value in ("/a b", "/a_b", "/a" * 80, "é")}
    assert len(odd) == 4
    assert all(len(name) <= 64 and name[0].isalpha() for name in odd)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"descriptors": []}, "a domain needs its name"),
        ({"domain": "d", "descriptors": {}}, "descriptors must be a list"),
        ({"domain": "d", "descriptors": [{"value": "x"}]}, "a descriptor needs a key"),
        ({"domain": "d", "descriptors": [{"key": "k", "ratelimit": SECOND}]}, "'ratelimit' is unknown"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unit": "fortnight", "requests_per_unit": 1}}]},
         "unit must be one of second, minute"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unit": "second"}}]}, "requests_per_unit = 10"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": SECOND}] * 2}, "twice at this level"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"unlimited": True, "unit": "second"}}]},
         "an unlimited descriptor has no unit"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": ITSELF}]},
         "cannot replace itself"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": SECOND | {"replaces": [{}]}}]}, "replaces must be"),
        ({"domain": "d", "descriptors": [{"key": "k", "share_threshold": True}]}, "needs a value with \\*"),
        ({"domain": "d", "descriptors": [{"key": "k", "rate_limit": {"quota": "ten/second"}}]}, "rate_limit: "),
        ({"domain": "d", "descriptors": ["k"]}, "a table is needed here"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_told_in_one_sentence(table, said):
    with pytest.raises(ConfigError, match=said):
        read_domains([(table, "limits.toml: domains[0]")])


def test_a_domain_stands_in_one_place():
    with pytest.raises(ConfigError, match="'d' is there twice"):
        read_domains([({"domain": "d"}, "one"), ({"domain": "d"}, "two")])


def test_files_of_envoys_own_service_are_read_as_they_are(tmp_path):
    limit = "rate_limit: {unit: minute, requests_per_unit: 7}"
    text = f"domain: edge\ndescriptors:\n  - key: port\n    value: 8080\n    {limit}\n"
    (tmp_path / "edge.yaml").write_text(text)
    found = read_domains(read_yaml_files(["*.yaml"], tmp_path))
    assert found.find("edge", [("port", "8080")]).limit.quota.limit == 7, "a number is a text here"


@pytest.mark.parametrize(("text", "said"), [("a: [", "not valid YAML"), ("", "a table is needed")])
def test_a_broken_yaml_file_is_named(tmp_path, text, said):
    (tmp_path / "edge.yaml").write_text(text)
    with pytest.raises(ConfigError, match=f"edge.yaml.*{said}"):
        read_domains(read_yaml_files(["edge.yaml"], tmp_path))


def test_a_pattern_that_names_no_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="names no file"):
        read_yaml_files(["nothing/*.yaml"], tmp_path)
