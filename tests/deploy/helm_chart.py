"""The Helm chart as helm renders it."""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

CHART = Path("deploy/helm/frontrow")


def helm(*words: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("helm")
    return subprocess.run([str(program), *words], capture_output=True, text=True, check=False, timeout=60)


@functools.cache
def rendered(*options: str) -> tuple[dict[str, Any], ...]:
    """Every object of the chart, as helm would send it to a cluster."""
    done = helm("template", "frontrow", str(CHART), *options)
    assert done.returncode == 0, done.stderr
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


def by_kind(kind: str, *options: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in rendered(*options) if one["kind"] == kind}


def pods(*options: str) -> dict[str, dict[str, Any]]:
    made = by_kind("Deployment", *options) | by_kind("Job", *options)
    return {name.rpartition("-")[2]: one["spec"]["template"] for name, one in made.items()}


def container_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return container
