"""What a code host reads: workflows, issue forms, hooks, and the files that tell people how the project works."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
SCHEMAS = {
    "github-workflows": [path.name for path in WORKFLOWS],
    "github-issue-forms": [path.name for path in FORMS if path.name != "config.yml"],
    "github-issue-config": ["config.yml"],
    "dependabot": ["dependabot.yml"],
}
# the commit of each action that we know, and its version; Dependabot changes both in the workflows
ACTIONS = {
    "actions/checkout@11d5960a326750d5838078e36cf38b85af677262": "v4.4.0",
    "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065": "v5.6.0",
    "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02": "v4.6.2",
    "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093": "v4.3.0",
    "actions/upload-pages-artifact@56afc609e74202658d3ffba0e8f6dda462b719fa": "v3.0.1",
    "actions/deploy-pages@d6db90164ac5ed86f2b6aed7e0febac5b3c0c03e": "v4.0.5",
    "actions/attest-build-provenance@e8998f949152b193b063cb0ec769d69d929409be": "v2.4.0",
    "pypa/gh-action-pypi-publish@ed0c53931b1dc9bd32cbe73a98c7f6766f8a527e": "v1.13.0",
}
# programs that are fetched while something is built, and what makes sure that they are the ones that were tested
PINNED = re.compile(r"==|--require-hashes|--no-index|-e \.|@\d|@\$\(|-r requirements/|'?frontrow\b|'\./|\bci\b")
INSTALLS = re.compile(r"\b(?:pip|pipx|uv pip) install\b.*|\bnpm (?:install|i|pack|exec)\b.*|\bnpx\b.*|\bgo install\b.*")
PIPED = re.compile(r"\b(?:curl|wget)\b[^\n]*\|\s*(?:sudo\s+)?(?:ba|z)?sh\b|\b(?:ba)?sh\s+<\(\s*(?:curl|wget)")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LIMITS = tomllib.loads((ROOT / "packages" / "limits" / "pyproject.toml").read_text())
SERVICE = tomllib.loads((ROOT / "packages" / "limits-service" / "pyproject.toml").read_text())


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize(("schema", "name"), [(schema, name) for schema, names in SCHEMAS.items() for name in names])
def test_a_file_for_github_follows_its_published_schema(schema: str, name: str) -> None:
    import json
    from importlib.resources import files

    [path] = (ROOT / ".github").rglob(name)
    known = json.loads((files("check_jsonschema") / f"builtin_schemas/vendor/{schema}.json").read_text("utf-8"))
    read = yaml.safe_load(path.read_text())
    if True in read:  # YAML 1.1 reads the key `on` so
        read["on"] = read.pop(True)
    jsonschema.validators.validator_for(known)(known).validate(read)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_known_actions_and_targets_and_bounds_itself(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(path):
        assert step.get("uses", next(iter(ACTIONS))) in ACTIONS
        for command in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
            assert {word for word in command.split() if "=" not in word} <= targets
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}, "more is given to single jobs"
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_a_commit_whose_version_stands_beside_it(path: Path) -> None:
    """A tag can be moved to other code; a commit cannot."""
    used = re.findall(r"uses:\s*(\S+)(?:\s+#\s*(\S+))?", path.read_text())
    assert used
    for action, version in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{action} is not pinned to a commit"
        assert ACTIONS[action] == version


def unpinned(text: str) -> list[str]:
    """Commands that fetch a program in whatever version there is today."""
    joined = text.replace("\\\n", " ")
    installs = [found[0] for found in INSTALLS.finditer(joined) if not PINNED.search(found[0])]
    return installs + [found[0] for found in PIPED.finditer(joined)]


def test_every_installer_is_pinned() -> None:
    """In workflows, deploy/, the Makefile, the docs and the scripts of CI."""
    looked = [ROOT / "Makefile", ROOT / "README.md", ROOT / "CONTRIBUTING.md", *WORKFLOWS]
    for folder in ("deploy", "docs", ".ci", "examples"):
        looked += [
            file for file in (ROOT / folder).rglob("*") if file.suffix in ("", ".md", ".sh", ".yaml", ".yml", ".tpl")
        ]
    found = {str(file.relative_to(ROOT)): unpinned(file.read_text()) for file in looked if file.is_file()}
    assert {name: commands for name, commands in found.items() if commands} == {}


@pytest.mark.parametrize(
    "command",
    [
        "curl -sSf https://example.org/install | sh",
        "pip install uv",
        "npx prettier .",
        "sh <(curl -s https://x.example)",
    ],
)
def test_an_installer_that_is_not_pinned_is_found(command: str) -> None:
    """The canary of the test above."""
    assert unpinned(f"RUN {command}\n")


def test_the_tests_run_on_every_python_that_the_package_promises() -> None:
    promised = {one.rpartition(" ")[2] for one in PYPROJECT["project"]["classifiers"] if "Python :: 3." in one}
    assert {one for one in LIMITS["project"]["classifiers"] if "Python ::" in one} == {
        one for one in PYPROJECT["project"]["classifiers"] if "Python ::" in one
    }
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == promised
    for project in (PYPROJECT, LIMITS):
        assert {f"3.{one[3:5]}" for one in project["tool"]["cibuildwheel"]["build"]} == promised


def test_the_limiter_has_wheels_for_every_common_machine() -> None:
    """manylinux, musllinux, macOS and Windows, on x86-64 and ARM."""
    patterns, skipped = (LIMITS["tool"]["cibuildwheel"][name] for name in ("build", "skip"))
    systems = ("manylinux_x86_64", "musllinux_aarch64", "macosx_arm64", "macosx_x86_64", "win_amd64", "win_arm64")
    wanted = [f"cp3{minor}-{system}" for minor in (11, 12, 13, 14) for system in systems]
    unwanted = [
        "cp310-manylinux_x86_64",
        "cp313-win32",
        "cp313-musllinux_i686",
        "cp313t-manylinux_x86_64",
        "pp311-win_amd64",
    ]

    def is_built(name: str) -> bool:
        return any(fnmatch(name, one) for one in patterns) and not any(fnmatch(name, one) for one in skipped)

    assert [name for name in wanted if not is_built(name)] == []
    assert [name for name in unwanted if is_built(name)] == []
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    machines = jobs["limits-wheels"]["strategy"]["matrix"]["machine"]
    assert {one.partition("-")[0] for one in machines} == {"ubuntu", "macos", "windows"}
    assert {"ubuntu-24.04-arm", "windows-11-arm", "macos-15-intel"} <= set(machines)
    assert any("packages/limits" in step.get("run", "") for step in jobs["limits-wheels"]["steps"])
    [source] = [
        step["with"]["path"] for step in jobs["source"]["steps"] if step.get("with", {}).get("name") == "source"
    ]
    assert source.split() == ["dist/*.tar.gz", "dist/frontrow_limits_service-*-py3-none-any.whl"], (
        "it has no compiled part"
    )
    assert set(jobs["publish"]["needs"]) == {"source", "limits-wheels", "wheels"}
    assert "_kernel" in LIMITS["tool"]["cibuildwheel"]["test-command"], "a wheel without the compiled store is no wheel"


def test_publishing_needs_no_password_and_only_its_job_may_publish() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()


def test_the_hooks_before_a_commit_are_valid_and_run(tmp_path: Path) -> None:
    """In a repository of their own: ruff puts a badly written file right."""
    config = (ROOT / ".pre-commit-config.yaml").read_text().replace(".venv/bin/", f"{BIN}/")
    (tmp_path / ".pre-commit-config.yaml").write_text(config)
    (tmp_path / "bad.py").write_text("import os\nx = {  'a':1 }\n")
    run = {"cwd": tmp_path, "capture_output": True, "text": True}
    subprocess.run(["git", "init", "--quiet"], **run, check=True)  # type: ignore[call-overload]
    subprocess.run(["git", "add", "."], **run, check=True)  # type: ignore[call-overload]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / "home")}
    done = subprocess.run([BIN / "pre-commit", "run", "--all-files"], **run, env=env)  # type: ignore[call-overload]
    assert done.returncode == 1, done.stdout
    assert (tmp_path / "bad.py").read_text() == 'x = {"a": 1}\n', done.stdout


def test_the_changelog_is_short_and_its_versions_have_known_parts() -> None:
    """D4: somebody who upgrades reads it in five minutes. What led to 0.1.0 is told in docs/history.md."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert len(text.encode()) <= 8 * 1024
    for version in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, notes = version.partition("\n")
        parts = re.findall(r"^### (.+)$", notes, re.MULTILINE)
        known = ["Added", "Changed", "Fixed", "Upgrade notes"]
        assert parts == [part for part in known if part in parts], f"{name}: {parts}"
        assert all(one.strip() for one in re.split(r"^### .+$", notes, flags=re.MULTILINE)[1:]), f"{name}: empty part"


def test_the_benchmark_of_the_limiter_says_what_it_takes_before_it_measures() -> None:
    def run(word: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bench.limits", word]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    helped, wrong = run("--help"), run("--quik")
    assert (helped.returncode, "--quick" in helped.stdout) == (0, True), helped.stderr
    assert (wrong.returncode, "unrecognized arguments: --quik" in wrong.stderr) == (2, True)


def test_versions_of_the_changelog_are_dated_and_all_packages_have_one_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert [one for one in headings[1:] if not re.fullmatch(r"\d+\.\d+\.\d+ – \d{4}-\d\d-\d\d", one)] == []
    version = PYPROJECT["project"]["version"]
    assert LIMITS["project"]["version"] == SERVICE["project"]["version"] == version
    assert f"frontrow-limits[redis,metrics]=={version}" in SERVICE["project"]["dependencies"]
    extras = LIMITS["project"]["optional-dependencies"]
    assert extras["serve"] == [f"frontrow-limits-service=={version}"]
    assert extras["otel"] == [f"frontrow-limits-service[otel]=={version}"]
    assert PYPROJECT["project"]["dependencies"] == [f"frontrow-limits=={version}"]
    for package in ("limits", "limits-service"):
        assert (ROOT / "packages" / package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "docs/releasing.md"])
def test_no_placeholder_is_left_in_what_people_rely_on(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"TODO|FIXME|INSERT|example\.(com|org)", text)


def test_contributing_says_how_to_run_one_test_and_it_runs() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (command,) = re.findall(r"To run one test[^`]*`\.venv/bin/python ([^`]+)`", text)
    told = subprocess.run([sys.executable, *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stdout + told.stderr
    assert re.search(r"^\.+ +\[100%\]$", told.stdout, re.MULTILINE), "some tests ran"
