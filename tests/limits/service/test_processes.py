"""O7: `frontrow-limits serve` as a command: its file, several workers, a graceful stop, a store that is frozen."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits_service.service_config import load_service_config
from tests.limits.service.support import COMMAND, RULES, check, config_of, running, served
from tests.support.eventually import eventually, eventually_sync

MANY = RULES.replace("3/day burst 3", "100000/day burst 100000")


@pytest.mark.parametrize("words", [["missing.toml"], [], ["--workers", "2"]])
def test_a_mistake_at_the_start_is_one_sentence_and_exit_code_2(tmp_path, words):
    (tmp_path / "limits.toml").write_text(RULES)
    file = ["limits.toml"] if words == ["--workers", "2"] else []
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    ended = subprocess.run(
        [*COMMAND, *file, *words], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("frontrow-limits: ")
    assert ended.stderr.count("\n") == 1


def test_without_its_libraries_it_says_what_to_install(tmp_path):
    (tmp_path / "limits.toml").write_text(RULES)
    program = "import sys; sys.modules['grpc'] = None; from frontrow.limits_service.command import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "serve", "limits.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.returncode, "pip install 'frontrow-limits[serve]'" in ended.stderr) == (2, True)


def test_a_file_can_be_checked_without_serving(tmp_path):
    (tmp_path / "limits.toml").write_text(RULES)
    command = [*COMMAND, str(tmp_path / "limits.toml"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "1 rules that count" in ended.stdout) == (0, True)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("", "there are no rules"),
        ("[serve]\nhtpp = '1'\n" + RULES, "did you mean serve.http"),
        ("[serve]\nhttp = 'nowhere'\n" + RULES, "serve.http must be like"),
        ("[serve]\nhttp = 'off'\ngrpc = 'off'\n" + RULES, "nothing would be served"),
        ("[serve]\ndecide = 'some'\n" + RULES, "must be one of all, each"),
        ("[other]\n" + RULES, "\\[other\\] is unknown"),
        ("[limits]\nstore = 'redis+cluster://127.0.0.1:7000'\n" + RULES, "a Redis Cluster cannot"),
        (RULES + "statuses = [401]\n", "only a middleware sees"),
        ("[[domains]]\ndomain = 'api'\n[[domains.descriptors]]\nkey = 'k'\nrate_limit = { quota = '1/s' }\n"
         "[[limits.rules]]\nname = 'api.k'\nquota = '1/s'\n", "both named 'api.k'"),
    ],
)  # fmt: skip
def test_mistakes_in_the_file_are_told(tmp_path, toml, said):
    (tmp_path / "limits.toml").write_text(toml)
    with pytest.raises(ConfigError, match=said):
        load_service_config(tmp_path / "limits.toml", env={})


def test_a_port_that_is_taken_is_told(tmp_path):
    with served(tmp_path, MANY) as (_, first):
        taken = [*COMMAND, str(tmp_path / "served.toml"), "--grpc", "off", "--http", first["http"]]
        ended = subprocess.run(taken, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, "cannot be used" in ended.stderr) == (2, True)


def test_several_workers_count_together_in_one_redis_and_tell_their_metrics_together(tmp_path, redis_url):
    toml = f'[limits]\nstore = "{redis_url}"\ndeadline_ms = 5000\n' + RULES
    with served(tmp_path, toml, "--workers", "2") as (_, address):
        told = [check(address["http"]).status_code for _ in range(20)]  # each by a connection of its own
        assert told == [200] * 3 + [429] * 17
        page = eventually_sync(
            lambda: httpx.get(f"http://{address['http']}/metrics", timeout=20).text,
            until=lambda text: all(f'frontrow_limits_store_up{{worker="{at}"}} 1.0' in text for at in (1, 2)),
        )
        refused = [line for line in page.splitlines() if 'decisions_total{outcome="refused",rule="api"' in line]
        assert len(refused) == 2


def test_a_worker_that_is_killed_is_replaced(tmp_path, redis_url):
    import psutil

    toml = f'[limits]\nstore = "{redis_url}"\n' + MANY
    with served(tmp_path, toml, "--workers", "2") as (process, address):
        before = {child.pid for child in psutil.Process(process.pid).children()}
        os.kill(min(before), signal.SIGKILL)
        eventually_sync(
            lambda: {child.pid for child in psutil.Process(process.pid).children()},
            until=lambda now: len(now) == 2 and now != before,
        )
        eventually_sync(
            lambda: check(address["http"]).status_code, until=lambda code: code == 200, ignoring=httpx.TransportError
        )


def test_workers_end_when_their_parent_is_gone(tmp_path, redis_url):
    import psutil

    toml = f'[limits]\nstore = "{redis_url}"\n' + MANY
    with served(tmp_path, toml, "--workers", "2") as (process, _):
        workers = psutil.Process(process.pid).children()
        process.kill()
        eventually_sync(lambda: [each for each in workers if each.is_running()], until=lambda alive: not alive)


def test_sigterm_ends_with_0_and_open_requests_are_answered(tmp_path, own_valkey):
    """The store is paused until the signal was heard, so that requests are open when it comes."""
    toml = f'[limits]\nstore = "{own_valkey.url}"\ndeadline_ms = 10000\n[serve]\ngrace_s = 20\n' + MANY
    with served(tmp_path, toml) as (process, address):
        assert check(address["http"]).status_code == 200
        own_valkey.pause()
        host, port = address["http"].split(":")
        with contextlib.closing(socket.create_connection((host, int(port)), 20)) as open_request:
            body = b'{"key":"42"}'
            open_request.sendall(
                b"POST /v1/check HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            eventually_sync(
                lambda: metric(address["http"], "frontrow_limits_http_connections"), until=lambda at: at >= 2
            )
            process.terminate()
            eventually_sync(lambda: takes_connections(host, int(port)), until=lambda takes: not takes)
            own_valkey.resume()
            answer = b""
            while chunk := open_request.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer
        assert process.wait(30) == 0


def takes_connections(host, port):
    try:
        socket.create_connection((host, port), 20).close()
    except ConnectionError:
        return False
    return True


def metric(address, name):
    page = httpx.get(f"http://{address}/metrics", timeout=20).text
    return float(next(line for line in page.splitlines() if line.startswith(f"{name}{{")).split()[-1])


def test_a_stop_ends_within_its_grace_even_if_a_client_sends_nothing(tmp_path):
    toml = "[serve]\ngrace_s = 0.2\n" + MANY
    with served(tmp_path, toml) as (process, address):
        host, port = address["http"].split(":")
        with contextlib.closing(socket.create_connection((host, int(port)), 20)) as slow:
            slow.sendall(b"POST /v1/check HTTP/1.1\r\n")
            check(address["http"])
            process.terminate()
            assert process.wait(30) == 0


async def test_while_stopping_it_is_not_ready(tmp_path):
    config = config_of(tmp_path, RULES, grace_s=5.0)
    async with running(config) as service:
        assert (await service.http.get("/readyz")).json() == {"status": "ready", "store": "up"}
        service.server.stop()
        await eventually(lambda: is_closed(service), until=bool)


async def is_closed(service):
    try:
        return (await service.http.get("/readyz")).status_code == 503
    except httpx.TransportError:
        return True


@pytest.mark.parametrize("policy", ["local", "open", "closed"])
async def test_a_frozen_store_is_answered_by_the_policy(tmp_path, own_valkey, policy):
    """How fast is measured by `python -m bench.limits_serve`; here nobody waits for the store."""
    toml = f'[limits]\nstore = "{own_valkey.url}"\non_store_down = "{policy}"\ndeadline_ms = 25\n' + RULES
    domain = '[[domains]]\ndomain = "d"\n[[domains.descriptors]]\nkey = "k"\nrate_limit = { quota = "3/day" }\n'
    async with running(config_of(tmp_path, toml + domain)) as service:
        await service.check("42")
        own_valkey.pause()
        try:
            began_s = time.monotonic()
            answers = await asyncio.gather(*(service.check("42") for _ in range(20)))
            told = [await service.envoy("d", [("k", "1")], [("k", "2")]) for _ in range(4)]
            assert time.monotonic() - began_s < 15, "far from the client's timeout of 20 s"
        finally:
            own_valkey.resume()
        expected = {"local": (200, 429), "open": (200,), "closed": (429,)}[policy]
        assert {answer.status_code for answer in answers} == set(expected)
        assert {answer.json()["source"] for answer in answers} == {policy}
        codes = [each.overall_code for each in told]
        assert codes == {"local": [1, 1, 1, 2], "open": [1] * 4, "closed": [2] * 4}[policy]
        page = await eventually(lambda: service.http.get("/readyz"), until=lambda answer: answer.status_code == 200)
        assert page.json()["store"] in ("up", "down")
        await eventually(lambda: service.check("43"), until=lambda answer: answer.json()["source"] == "store")


async def test_two_versions_of_the_rules_count_together(tmp_path, redis_url):
    """A rolling deployment: the old server allows 5, the new one 3, over the same Redis."""
    old_folder, new_folder = tmp_path / "old", tmp_path / "new"
    old_folder.mkdir(), new_folder.mkdir()
    head = '[[domains]]\ndomain = "d"\n[[domains.descriptors]]\nkey = "k"\n'
    text = head + 'rate_limit = {{ quota = "{}/day fixed_window" }}\n'
    old = config_of(old_folder, text.format(5), redis_url)
    new = config_of(new_folder, text.format(3) + text.format(9).replace('"d"', '"new"'), redis_url)
    async with running(old) as first, running(new) as second:
        assert await first.codes("d", [("k", "1")], times=2) == ".."
        assert await second.codes("d", [("k", "1")], times=2) == ".X"
        assert await first.codes("d", [("k", "1")], times=3) == "..X"
