"""L13: rules match the path the application routes on, whatever way it is spelt (the Starlette "BadHost" class)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError
from frontrow.limits.paths import PathMatcher, readings, segments

HOLDS = PathMatcher(["/api/holds"])


def met(matcher: PathMatcher, path: str, root_path: str = "") -> bool:
    return any(matcher.match(way) is not None for way in readings(path, root_path))


@pytest.mark.parametrize(
    "path",
    [
        "/api/holds",
        "/api/holds/",
        "//api//holds",
        "/" * 200 + "api/holds",
        "/API/Holds",
        "/api/holds.",
        "/api./holds...",
        "/api/holds ",
        "/api%2fholds",
        "/api%252Fholds",
        "/api%25252fholds",
        "/%61pi/holds",
        "/api\\holds",
        "/api/./holds",
        "/x/../api/holds",
        "/../../api/holds",
        "/api/holds;jsessionid=1",
        "/api;v=1/holds",
        "/api/x/%2e%2e/holds",
    ],
)
def test_l13_a_strange_spelling_does_not_step_around_a_rule(path):
    assert met(HOLDS, path)


@pytest.mark.parametrize("path", ["/", "/api", "/api/x", "/api/holds/1", "/apiholds", "", "/x/api/holds", "/api/h"])
def test_l13_other_paths_do_not_match(path):
    assert not met(HOLDS, path)


def test_l13_dot_segments_do_not_lead_out_of_a_rule_for_apps_that_route_on_the_literal_path():
    api = PathMatcher(["/api/**"])
    assert met(api, "/api/x/../../public"), "an app with /api/{rest:path} answers this under /api"


def test_l13_mounted_apps_match_with_and_without_the_mount_point():
    assert met(HOLDS, "/mounted/api/holds", "/mounted")
    assert met(PathMatcher(["/mounted/api/holds"]), "/mounted/api/holds", "/mounted")
    assert not met(HOLDS, "/mounted/api/holds", "/mount")


def test_l13_the_most_specific_pattern_names_the_endpoint():
    matcher = PathMatcher(["/**", "/events/**", "/events/{event}", "/events/{event}/holds", "/events/new", "/a/*/c"])
    expected = {
        "/": "/**",
        "/x/y": "/**",
        "/events": "/events/**",
        "/events/42": "/events/{event}",
        "/events/new": "/events/new",
        "/events/42/holds": "/events/{event}/holds",
        "/events/new/holds": "/events/{event}/holds",
        "/events/42/holds/1": "/events/**",
        "/a/b/c": "/a/*/c",
        "/a/b/d": "/**",
    }
    assert {path: matcher.match(segments(path)) for path in expected} == expected


@pytest.mark.parametrize("pattern", ["events", "/a/**/b", "/a*", "/{x", "/a/{b}c", ""])
def test_l15_a_wrong_pattern_is_an_error_that_shows_a_valid_one(pattern):
    with pytest.raises(ConfigError, match=r"/events/\{event\}/holds or /api/\*\*"):
        PathMatcher([pattern])


@given(st.text(max_size=60), st.sampled_from(["", "/root"]))
def test_l13_any_text_as_a_path_is_read_without_an_error_and_the_plain_reading_comes_first(path, root):
    ways = readings(path, root)
    assert 1 <= len(ways) <= 14
    assert segments(path) in ways


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "%2e%2e", "%2f", "\\", ";x", "api"]), max_size=12))
def test_l13_decorating_a_path_with_empty_segments_and_case_changes_nothing(parts):
    plain, noisy = "/" + "/".join(parts), "//" + "//".join(part.upper() for part in parts) + "/"
    assert met(PathMatcher(["/api/**"]), plain) == met(PathMatcher(["/api/**"]), noisy)
