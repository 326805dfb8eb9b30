"""`make containers`: build the images, start deploy/compose.yaml, check what an operator relies on, remove everything.

    python -m tests.containers [--before REVISION] [--archive URI]

It needs root and Debian's container packages, and says which are missing. The containers run in namespaces of their own
(network, processes, mounts), so that no port, address or firewall rule of the machine is used, and everything is gone
when this program ends, however it ends.
"""

import argparse
import asyncio
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

from tests.containers import images
from tests.containers.compose_plan import ComposePlan, read_plan
from tests.containers.engine import Engine, Failed, missing_packages, most_open_files
from tests.containers.scenes import SCENES, World
from tests.containers.selling import Sale
from tests.containers.stack import OURS, Stack
from tests.containers.stand_ins import STAND_INS, SUITES, python_image, repository
from tests.journeys.mailbox import SmtpServer
from tests.support.compose import read_env
from tests.support.localstripe import PUBLISHABLE_KEY, SECRET_KEY, WEBHOOK_SECRET, LocalStripe

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".venv" / "containers"  # images for the next run, some gigabytes; `make clean` removes them
MOST_MB = 250
SCENE_S, RUN_S = 600, 3_600
NEW, BEFORE = "localhost/frontrow:new", "localhost/frontrow:before"
began_s = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - began_s:4.0f} s] {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.containers")
    parser.add_argument("--before", help="the revision to upgrade from")
    parser.add_argument("--archive", help="Debian's archive, instead of the one of this machine's apt")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        global began_s
        began_s = given.began or began_s
        return run_inside(given.inside)
    if os.geteuid() != 0:
        return refuse("it starts containers with networks, and needs root")
    if lacking := missing_packages():
        return refuse(f"packages are missing: apt-get install --no-install-recommends {' '.join(lacking)}")
    KEPT.mkdir(parents=True, exist_ok=True)
    lock = (KEPT / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return refuse("it runs already")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything below is ended in order
    folder = Path(tempfile.mkdtemp(prefix="frontrow-containers-"))
    try:
        build(Engine(KEPT), folder, given.before, given.archive)
        return run_apart(folder)
    except (images.NotPossible, Failed, subprocess.SubprocessError) as error:
        return refuse(str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refuse(reason: str) -> int:
    print(f"make containers: NOT RUN: {reason}", file=sys.stderr, flush=True)
    return 2


def build(engine: Engine, folder: Path, before: str | None, archive: str | None) -> None:
    """All images. Fails when ours is too large."""
    engine.forget_the_last_run()
    uri = archive or images.archive()
    for suite in SUITES:
        say(f"Debian {suite} …")
        images.make_debian(engine, suite, uri, say)
        say(f"Debian {suite} is an image")
    tree, earlier = folder / "now", folder / "before"
    images.copy_of_this_tree(ROOT, tree)
    services = read_services(tree)
    notes = []
    for image in sorted({*services.values(), python_image(tree / "deploy" / "Dockerfile")}):
        if repository(image) in STAND_INS:
            notes.append(f"{image} is a stand-in: {images.make_stand_in(engine, image)}")
            say(notes[-1])
    say("our image …")
    base = images.build_ours(engine, tree, NEW)
    size_mb = engine.own_bytes(NEW, base) / 1e6
    say(f"our image is built: our layers are {size_mb:.0f} MB of at most {MOST_MB}")
    if size_mb > MOST_MB:
        largest = ", ".join(f"{name} {mb:.0f}" for mb, name in images.parts_of(NEW, engine))
        raise images.NotPossible(f"our layers are {size_mb:.0f} MB, more than {MOST_MB}; the largest: {largest}")
    say("the image before …")
    revision, why = (before, f"{before}, as told") if before else images.revision_before(ROOT)
    images.copy_of_revision(ROOT, revision, earlier)
    images.build_ours(engine, earlier, BEFORE)
    notes.append(f"the image before is {why}; its base is the same stand-in")
    say(notes[-1])
    engine.drop_unused_layers()
    (folder / "size").write_text(f"{size_mb:.0f}")
    (folder / "notes").write_text("\n".join(notes))


def read_services(tree: Path) -> dict[str, str]:
    """Service -> image, without ours."""
    import yaml

    services = yaml.safe_load((tree / "deploy" / "compose.yaml").read_text())["services"]
    return {name: one["image"] for name, one in services.items() if "build" not in one}


def run_apart(folder: Path) -> int:
    """The second half of this program in namespaces of its own. When it ends, the kernel ends all that it started."""
    words = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
    ]
    words += [sys.executable, "-m", "tests.containers", "--inside", str(folder), "--began", str(began_s)]
    inside = subprocess.Popen(words, cwd=ROOT)
    try:
        return inside.wait(RUN_S)
    except subprocess.TimeoutExpired:
        return refuse(f"it was not done within {RUN_S} s")
    finally:
        inside.kill()
        inside.wait(60)
        Engine(KEPT).forget_the_last_run()


def run_inside(folder: Path) -> int:
    """Process 1 of the namespace: it collects the engine's orphans while its child does the work."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            Path("/run/containers").mkdir(exist_ok=True)  # names of the network stand here: not those of the machine
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/containers"], check=True)
            code = asyncio.run(check(folder))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    while True:  # until the child has ended
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


async def check(folder: Path) -> int:
    """Start everything, play the scenes, stop everything; one line for each at the end."""
    engine, deploy = Engine(KEPT), folder / "now" / "deploy"
    services = read_services(folder / "now")
    left_out = frozenset(name for name, image in services.items() if repository(image) not in STAND_INS)
    results: list[tuple[str, bool, str]] = []
    mail = SmtpServer("0.0.0.0")
    mail.start()
    with LocalStripe("0.0.0.0") as stripe:
        write_settings(deploy, mail, stripe)
        earlier = folder / "before" / "deploy" / "compose.yaml"
        shutil.copy(deploy / ".env", earlier.with_name(".env"))
        plan, before = [
            read_plan(file, most_open_files=most_open_files()) for file in (deploy / "compose.yaml", earlier)
        ]
        stack = Stack(engine, mixed(plan, before), left_out)
        kept = folder / "notes"
        notes = [*(kept.read_text().splitlines() if kept.exists() else ()), *plan.notes]
        notes += [*(f"NOT STARTED: {name}: nobody packages {services[name]}" for name in sorted(left_out))]
        try:
            engine("tag", BEFORE, OURS)
            say("starting deploy/compose.yaml with the image before")
            await asyncio.to_thread(stack.up)
            started = [container for containers in stack.running.values() for container in containers]
            results.append(("compose.yaml starts as it is", True, f"healthy: {', '.join(started)}"))
            password = read_env(deploy / ".env")["POSTGRES_PASSWORD"]
            sale = Sale(
                "http://127.0.0.1:8080", f"postgresql://frontrow:{password}@{stack.address('postgres')}/frontrow"
            )
            world = World(stack, plan, sale, mail, stripe, NEW, deploy)
            for name, scene in SCENES.items():
                say(f"{name} …")
                results.append(await played(name, scene(world)))
                say(f"{'ok' if results[-1][1] else 'FAILED'}: {results[-1][2]}")
        except Exception as error:
            results.append(("compose.yaml starts as it is", False, f"{type(error).__name__}: {error}"))
        finally:
            if not all(good for _, good, _ in results):
                tell_logs(engine, stack)
            engine.remove_everything()
            mail.stop()
    print_summary(results, notes, (folder / "size").read_text())
    return 0 if len(results) == len(SCENES) + 1 and all(good for _, good, _ in results) else 1


def mixed(plan: ComposePlan, before: ComposePlan) -> ComposePlan:
    """The file of today, but with our own services as the file before describes them."""
    ours = {name: one for name, one in before.services.items() if one.builds and name in plan.services}
    return replace(plan, services={name: ours.get(name, one) for name, one in plan.services.items()})


async def played(name: str, scene: "asyncio.Future[str] | object") -> tuple[str, bool, str]:
    try:
        return name, True, await asyncio.wait_for(scene, SCENE_S)  # type: ignore[arg-type]
    except Exception as error:  # whatever it is, the other scenes are played
        return name, False, f"{type(error).__name__}: {error}"


def write_settings(deploy: Path, mail: SmtpServer, stripe: LocalStripe) -> None:
    """deploy/.env as example.env says, with a payment provider and a mail server on this side of the network."""
    import yaml

    made = {"FRONTROW_STRIPE_KEY": SECRET_KEY, "FRONTROW_STRIPE_WEBHOOK_SECRET": WEBHOOK_SECRET}
    made["FRONTROW_STRIPE_PUBLISHABLE_KEY"] = PUBLISHABLE_KEY
    example = read_env(deploy / "example.env")
    (subnet,) = yaml.safe_load((deploy / "compose.yaml").read_text())["networks"]["default"]["ipam"]["config"]
    gateway = str(next(ip_network(subnet["subnet"]).hosts()))
    given = {name: value or made.get(name) or secrets.token_hex(32) for name, value in example.items()}
    given["FRONTROW_STRIPE_API"] = stripe.url.replace("127.0.0.1", gateway)
    given["FRONTROW_MAIL_URL"] = mail.url.replace("127.0.0.1", gateway)
    many = "1000/second"  # all these fans have one address
    given |= {"FRONTROW_SERVER_PER_PERSON": many, "FRONTROW_SERVER_PER_IP": many}
    (deploy / ".env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))


def tell_logs(engine: Engine, stack: Stack) -> None:
    """The last lines of every container, for whoever must find out why."""
    for containers in stack.running.values():
        for container in containers:
            done = engine.tried("logs", "--tail", "30", container)
            print(f"--- {container}\n{done.stdout}{done.stderr}", flush=True)


def print_summary(results: list[tuple[str, bool, str]], notes: list[str], size_mb: str) -> None:
    print("\nmake containers", flush=True)
    print(f"  ok      our layers: {size_mb} MB of at most {MOST_MB}")
    for name, good, told in results:
        print(f"  {'ok     ' if good else 'FAILED '} {name}: {told}")
    for note in notes:
        print(f"  note    {note}")


if __name__ == "__main__":
    sys.exit(main())
