"""O7: the examples of docs/limits-service.md run, and the clients of every language pass the same vectors."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.docs.blocks import ROOT
from tests.limits.service.support import served
from tests.support.chromium import NODE
from tests.support.not_checked import SAID as NOT_CHECKED

PAGE = (ROOT / "docs" / "limits-service.md").read_text("utf-8")
VECTORS = ROOT / "tests" / "data" / "limits_service_vectors.json"
RULES = json.loads(VECTORS.read_text())["rules"]
STEPS = json.loads(VECTORS.read_text())["steps"]

TYPESCRIPT_DRIVER = """
import { readFileSync } from "node:fs";
import { Limits } from "./limits.ts";
const limits = new Limits(process.argv[2]);
for (const step of JSON.parse(readFileSync(process.argv[3], "utf8")).steps) {
  const answer = await limits.post(step.path, step.body);
  const body = await answer.json();
  const wrong = Object.entries(step.answer).filter(([name, value]) => body[name] !== value);
  if (answer.status !== step.status || wrong.length) throw new Error(JSON.stringify([step, answer.status, body]));
  for (const [name, value] of Object.entries(step.headers ?? {})) {
    const given = answer.headers.get(name);
    if (given === null || (value !== "*" && given !== value)) throw new Error(`${name}: ${given}`);
  }
}
const spent = await limits.lease("job", 5, async (spend) => { let n = 0; while (n < 3 && spend()) n++; return n; },
  { quota: "10/day fixed_window" });
const left = await (await limits.post("/v1/peek", { key: "job", quota: "10/day fixed_window" })).json();
const refused = await limits.check({ user: "ada" });
console.log(JSON.stringify({ spent, remaining: left.remaining, allowed: refused.allowed }));
"""

GO_DRIVER = """
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
)

func main() {
	limits := Limits{URL: os.Args[1]}
	text, _ := os.ReadFile(os.Args[2])
	var vectors struct {
		Steps []struct {
			Path    string
			Body    map[string]any
			Status  int
			Answer  map[string]any
			Headers map[string]string
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		panic(err)
	}
	for _, step := range vectors.Steps {
		status, headers, answer, err := limits.Post(step.Path, step.Body)
		if err != nil || status != step.Status {
			panic(fmt.Sprint(step, status, answer, err))
		}
		for name, value := range step.Answer {
			if !reflect.DeepEqual(answer[name], value) {
				panic(fmt.Sprint(step, answer))
			}
		}
		for name, value := range step.Headers {
			if given := headers.Get(name); given == "" || (value != "*" && given != value) {
				panic(fmt.Sprint(name, given))
			}
		}
	}
	allowed, err := limits.Allows(map[string]any{"user": "ada"}, 1)
	fmt.Println(allowed, err)
}
"""


def block(kind: str) -> str:
    [code] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return code


@pytest.fixture(params=["memory", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str):
    store = "memory://" if request.param == "memory" else redis_url
    with served(tmp_path, f'[limits]\nstore = "{store}"\ndeadline_ms = 5000\n{RULES}') as (_, addresses):
        yield addresses["http"]


def test_the_service_passes_the_vectors(address: str) -> None:
    for step in STEPS:
        answer = httpx.post(f"http://{address}{step['path']}", json=step["body"], timeout=20)
        assert answer.status_code == step["status"], (step, answer.text)
        assert {name: answer.json()[name] for name in step["answer"]} == step["answer"], step
        for name, value in step.get("headers", {}).items():
            assert value in ("*", answer.headers[name])


def test_the_typescript_client_of_the_page_passes_the_vectors(address: str, tmp_path: Path) -> None:
    (tmp_path / "limits.ts").write_text(block("ts"))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "driver.ts").write_text(TYPESCRIPT_DRIVER)
    command = [NODE, "--disable-warning=ExperimentalWarning", "driver.ts", f"http://{address}", str(VECTORS)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"spent": 3, "remaining": 7, "allowed": False}


def test_the_go_client_of_the_page_passes_the_vectors(
    address: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    go = shutil.which("go")
    if go is None:
        request.node.user_properties.append((NOT_CHECKED, "the Go client of docs/limits-service.md (no go here)"))
        return
    (tmp_path / "limits.go").write_text(block("go"))
    (tmp_path / "driver.go").write_text(GO_DRIVER)
    (tmp_path / "go.mod").write_text("module limits\n\ngo 1.19\n")
    command = [go, "run", ".", f"http://{address}", str(VECTORS)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=170)
    assert (ended.returncode, ended.stdout) == (0, "false <nil>\n"), ended.stderr


def test_the_commands_of_the_page_are_answered(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if shutil.which("curl") is None:
        request.node.user_properties.append((NOT_CHECKED, "the curl lines of docs/limits-service.md (no curl here)"))
        return
    [file] = re.findall(r"^```toml\n(# limits.toml\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^curl .*$", PAGE, re.MULTILINE)
    assert len(lines) == 3
    with served(tmp_path, file) as (_, addresses):
        for line in lines:
            here = line.replace("127.0.0.1:8071", addresses["http"])
            ended = subprocess.run(["sh", "-c", here], capture_output=True, text=True, timeout=60)
            assert ended.returncode == 0
            assert "detail" not in json.loads(ended.stdout)


def test_the_page_names_every_setting_and_its_default() -> None:
    from dataclasses import fields

    from frontrow.limits_service.settings import ServeSettings

    table = PAGE[PAGE.index("| setting of `[serve]`") :]
    assert [each.name for each in fields(ServeSettings) if f"`{each.name}`" not in table] == []
