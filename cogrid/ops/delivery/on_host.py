"""Run on the host by its own Python: one act on an installation of cogrid.

It is sent as text, ``python -I -c THIS REQUEST``, knows nothing of cogrid and needs nothing but
Python 3.11. The request is a JSON object: ``act`` and the arguments of the function of that name.
On stdout, a line ``- …`` before each thing that takes long, at last a line of JSON: the answer, or
``{"refused": kind, "what": sentence}``, with exit code 1. Nothing else decides on words.

An installation is a directory::

    <base>/versions/<name>/                    an environment of its own
    <base>/versions/<name>/cogrid-bundle.json  comes last: without it the directory is half made
    <base>/current -> versions/<name>          what units run

An environment cannot be moved, so it is made where it stays. One act at a time holds the lock,
which is on the base directory itself.
"""

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

MANIFEST = "cogrid-bundle.json"
CURRENT = "current"
BUSY_S = 60.0
"""For another one that installs there to end."""
RUN_S = 300.0
"""For pip; a Raspberry Pi compiles half a minute."""
NOBODY = 65534
DAEMONS = """
import importlib, pkgutil
for name in ("cogrid.cli.main", "cogrid.coordinator", "cogrid.worker", "cogrid.reaper"):
    found = importlib.import_module(name)
    for each in pkgutil.walk_packages(getattr(found, "__path__", ()), name + "."):
        importlib.import_module(each.name)
"""
"""Everything that a daemon loads, with the compiled code below it."""
KINDS = {
    errno.ENOSPC: "space",
    errno.EDQUOT: "space",
    errno.EACCES: "right",
    errno.EPERM: "right",
    errno.EROFS: "readonly",
}


class RefusalError(Exception):
    """kind: for a program. what: a sentence for a person."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what


class Stopped(BaseException):
    """Somebody wants us to end."""


# Acts


def look(base: str) -> dict[str, Any]:
    """What is installed; writes nothing."""
    place = base_of(base)
    return {
        "base": str(place),
        "current": current(place),
        "works": works(place / CURRENT),
        "versions": [manifest(each) for each in versions(place)],
    }


def ready(base: str, name: str, version: str) -> dict[str, Any]:
    """Whether this one is there, whole, and runs; writes nothing."""
    place = base_of(base)
    return {"base": str(place), "ready": is_ready(place / "versions" / name, version)}


def stage(
    base: str,
    name: str,
    version: str,
    wheels: dict[str, str],
    pip: str,
    needed_bytes: int,
    everyone: bool,
    stall_s: float,
) -> dict[str, Any]:
    """Make an installation beside the others from the tar on stdin; nothing runs it yet.

    wheels: file names with their SHA-256, pip's among them. everyone: any user shall be able to
    run it. stall_s: an upload that stands still for so long has ended. A failure leaves nothing.
    """
    place = base_of(base)
    made = make(place / "versions")
    with lock(place):
        final, upload = place / "versions" / name, Upload(stall_s)
        if is_ready(final, version):
            upload.drain()
            return {"base": str(place), "fresh": False}
        try:
            sweep(place)
            check(place, needed_bytes)
            remove_tree(final)
            build(final, upload, wheels, pip)
            say("proving that it runs")
            prove(final, version, everyone)
            say("keeping it")
            write_manifest(final, version, wheels, pip)
        except BaseException:
            remove_tree(final)
            unmake(made)
            raise
    return {"base": str(place), "fresh": True}


def switch(base: str, name: str, back: bool = False) -> dict[str, Any]:
    """Make one current. Both are stamped, so that those used last are kept, and in which order they
    were used is known; not on the way back, or the one that was left would count as the one before.
    """
    place = base_of(base)
    with lock(place):
        if not (place / "versions" / name / MANIFEST).exists():
            raise RefusalError("absent", f"{place / 'versions' / name} is not there any more")
        before = current(place)
        now_s = time.time()
        # Apart by more than the clock of some kernels moves on between the two.
        for each, used_s in () if back else ((before, now_s - 0.01), (name, now_s)):
            with contextlib.suppress(OSError):
                os.utime(place / "versions" / each / MANIFEST, (used_s, used_s))
        point(place, name)
    return {"before": before}


def prune(base: str) -> dict[str, Any]:
    """Take away all but the current one, the one used last before it, and what still runs."""
    place = base_of(base)
    with lock(place):
        now = current(place)
        others = [each for each in versions(place) if each.name != now]
        others.sort(key=lambda each: manifest(each)["used_at"], reverse=True)
        gone = [each for each in others[1:] if each.name not in running(place)]
        for each in gone:
            remove_tree(each)
    return {"removed": [each.name for each in gone]}


def remove(base: str) -> dict[str, Any]:
    """Take everything of ours away but what still runs; then it stays as it is."""
    place = base_of(base)
    if not place.exists():
        return {"removed": [], "kept": [], "left": []}
    with lock(place):
        kept = sorted(running(place))
        gone = [] if kept else [each.name for each in versions(place)]
        if not kept:
            point(place, "")
            for each in versions(place):
                remove_tree(each)
            unmake([place, place / "versions"])
    left = sorted(each.name for each in place.iterdir()) if place.exists() else []
    return {"removed": gone, "kept": kept, "left": left}


ACTS = {act.__name__: act for act in (look, ready, stage, switch, prune, remove)}


# What is there


def base_of(base: str) -> Path:
    """The directory that is meant; "": the user's own (XDG base directories)."""
    if base:
        return Path(base)
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local/share") / "cogrid"


def current(place: Path) -> str:
    """The name of the current one, "" where there is none."""
    with contextlib.suppress(OSError):
        return os.path.basename(os.readlink(place / CURRENT))
    return ""


def versions(place: Path) -> list[Path]:
    """All of them, half made ones too."""
    with contextlib.suppress(OSError):
        return sorted(each for each in (place / "versions").iterdir() if each.is_dir())
    return []


def manifest(one: Path) -> dict[str, Any]:
    """What is known of one; whole: it was made to the end. used_at: Unix time."""
    try:
        said = json.loads((one / MANIFEST).read_text())
        used_at = (one / MANIFEST).stat().st_mtime
    except (OSError, ValueError):
        return {"name": one.name, "version": "", "python": "", "whole": False, "used_at": 0.0}
    return {"name": one.name, **said, "whole": True, "used_at": used_at}


def works(one: Path) -> str:
    """What its program says of its version, "" where it does not run: its Python may be gone."""
    try:
        done = run([str(one / "bin/cogrid"), "--version"], timeout_s=20.0)
    except (OSError, RefusalError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def is_ready(one: Path, version: str) -> bool:
    """Whether it is whole and runs."""
    return (one / MANIFEST).exists() and version in works(one)


def running(place: Path) -> set[str]:
    """Names of those that a process runs: its interpreter is called by the path in there."""
    found = set()
    start = f"{place / 'versions'}/".encode()
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            for word in each.read_bytes().split(b"\0"):
                if word.startswith(start):
                    found.add(os.fsdecode(word[len(start) :].split(b"/")[0]))
    return found


# Making one


def check(place: Path, needed_bytes: int) -> None:
    """Raises RefusalError where it cannot go well, before anything of it is written."""
    disk = os.statvfs(place)
    free = disk.f_bavail * disk.f_frsize
    if disk.f_flag & os.ST_NOEXEC:
        raise RefusalError("noexec", f"{place} is on a file system that is mounted noexec")
    if free < needed_bytes:
        needed, there = needed_bytes >> 20, free >> 20
        raise RefusalError(
            "space", f"{place} has {there} MiB free, of the {needed} MiB that it takes"
        )
    if (place / CURRENT).exists() and not (place / CURRENT).is_symlink():
        raise RefusalError("foreign", f"{place / CURRENT} is not a link: it is not cogrid's")
    for each in (place, place / "versions"):
        found = each.stat()
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RefusalError("owner", f"{each} can be written by others")


def sweep(place: Path) -> None:
    """Half made ones: whoever made them does not hold the lock, so it is gone."""
    for each in versions(place):
        if not (each / MANIFEST).exists():
            remove_tree(each)


def build(final: Path, upload: io.RawIOBase, wheels: dict[str, str], pip: str) -> None:
    """The environment with everything in it."""
    store, scratch = final / "wheels", final / "tmp"
    for each in (final, store, scratch):
        each.mkdir()
    say("receiving wheels")
    receive(store, upload, wheels)
    say("making an environment")
    make_environment(final)
    say(f"installing {len(wheels) - 1} wheels")
    install([store / each for each in wheels if each != pip], store / pip, final)
    for each in (store, scratch):
        remove_tree(each)


class Upload(io.RawIOBase):
    """stdin, which a connection that was cut without a word would leave open for hours, while we
    hold the lock."""

    def __init__(self, stall_s: float) -> None:
        self.stall_s = stall_s

    def readinto(self, into: Any) -> int:
        """What has come: 0 bytes at the end."""
        if not select.select([0], [], [], self.stall_s)[0]:
            raise RefusalError("upload", f"nothing came for {self.stall_s:g} s of an upload")
        return os.readv(0, [into])

    def drain(self) -> None:
        """Take the rest, so that whoever sends it comes to its end."""
        while self.read(1 << 16):
            pass


def receive(store: Path, upload: io.RawIOBase, wheels: dict[str, str]) -> None:
    """The wheels from the tar that comes; RefusalError where one is not what it should be."""
    missing = dict(wheels)
    try:
        with tarfile.open(fileobj=upload, mode="r|") as tar:
            for entry in tar:
                file = tar.extractfile(entry)
                content = file.read() if file else b""
                if hashlib.sha256(content).hexdigest() != missing.pop(entry.name, ""):
                    raise RefusalError("upload", f"{entry.name} did not arrive as it was sent")
                (store / entry.name).write_bytes(content)
    except tarfile.TarError as error:
        raise RefusalError("upload", f"the upload was cut off: {error}") from error
    if missing:
        raise RefusalError("upload", f"the upload was cut off: {min(missing)} is missing")


def make_environment(final: Path) -> None:
    """Without pip: that would need ensurepip, which Debian keeps in a package of its own."""
    try:
        from venv import EnvBuilder
    except ImportError as error:
        raise RefusalError("venv", f"{sys.executable} cannot make environments: {error}") from error
    EnvBuilder(symlinks=True, with_pip=False).create(final)


def install(wheels: list[Path], pip: Path, final: Path) -> None:
    """pip runs from its wheel. --no-deps: what is needed was decided before."""
    options = (
        "--no-index", "--no-deps", "--no-cache-dir", "--no-input", "--quiet",
        "--disable-pip-version-check", "--root-user-action=ignore",
    )  # fmt: skip
    words = [str(final / "bin/python"), "-I", f"{pip}/pip", "install", *options, *map(str, wheels)]
    done = run(words, PIP_CONFIG_FILE=os.devnull, TMPDIR=str(final / "tmp"))
    if done.returncode != 0:
        full = os.statvfs(final).f_bavail == 0
        raise RefusalError("space" if full else "pip", f"pip could not install them: {last(done)}")


def prove(final: Path, version: str, everyone: bool) -> None:
    """Run it as what it is called, then load all that a daemon loads; as nobody, too, where every
    user shall be able to."""
    program, python = str(final / "bin/cogrid"), str(final / "bin/python")
    for user in (None, NOBODY) if everyone and os.geteuid() == 0 else (None,):
        whom = "" if user is None else " by a user who is not root"
        try:
            said = run([program, "--version"], user=user)
            loaded = run([python, "-I", "-B", "-c", DAEMONS], user=user)
        except OSError as error:
            raise RefusalError(
                "proof", f"{program} cannot be run{whom}: {error.strerror}"
            ) from error
        if said.returncode != 0 or version not in said.stdout:
            raise RefusalError("proof", f"{program} --version fails{whom}: {last(said)}")
        if loaded.returncode != 0:
            raise RefusalError("proof", f"{python} cannot load cogrid{whom}: {last(loaded)}")


def write_manifest(final: Path, version: str, wheels: dict[str, str], pip: str) -> None:
    """Last, and only when all before it is on the disk."""
    kept = {name: digest for name, digest in wheels.items() if name != pip}
    content = {"version": version, "python": sys.executable, "wheels": kept}
    draft = final / f"{MANIFEST}.new"
    draft.write_text(json.dumps(content, indent=1) + "\n")
    os.sync()
    os.replace(draft, final / MANIFEST)


# Tools


def make(directory: Path) -> list[Path]:
    """The directories that had to be made for this one."""
    made = [each for each in (directory, *directory.parents) if not each.exists()][::-1]
    directory.mkdir(parents=True, exist_ok=True)
    return made


def unmake(directories: list[Path]) -> None:
    """Those that are empty."""
    for each in reversed(directories):
        with contextlib.suppress(OSError):
            each.rmdir()


@contextlib.contextmanager
def lock(place: Path) -> Iterator[None]:
    """Waits for another one that works there."""
    deadline = time.monotonic() + BUSY_S
    while (held := take(place)) is None:
        if time.monotonic() > deadline:
            raise RefusalError("busy", f"another installation is at work in {place}")
        time.sleep(0.2)
    try:
        yield
    finally:
        os.close(held)


def take(place: Path) -> int | None:
    """The lock, None while another one has it, who may also have taken the directory away."""
    place.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(place)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def point(place: Path, name: str) -> None:
    """Let the link point there, by a rename; "": take it away."""
    link = place / CURRENT
    if not name:
        link.unlink(missing_ok=True)
        return
    draft = place / f".{CURRENT}-{os.getpid()}"
    draft.unlink(missing_ok=True)
    draft.symlink_to(f"versions/{name}")
    os.replace(draft, link)


def remove_tree(directory: Path) -> None:
    """The manifest first: what is half gone must not look whole."""
    (directory / MANIFEST).unlink(missing_ok=True)
    if directory.exists():
        shutil.rmtree(directory)


def run(
    words: list[str], *, timeout_s: float = RUN_S, user: int | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """A program with what it says, both outputs in one, in an environment without surprises."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHON", "COGRID_"))
    }
    try:
        return subprocess.run(
            words, check=False, cwd="/", text=True, errors="replace", timeout=timeout_s,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**clean, "LC_ALL": "C.UTF-8", **env},
            user=user, group=user, extra_groups=None if user is None else [],
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RefusalError("slow", f"{words[0]} did not end within {timeout_s:g} s") from error


def last(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {done.returncode}"


def say(what: str) -> None:
    """A line for whoever waits; where nobody does any more, this ends us."""
    print(f"- {what}", flush=True)


def stop(_number: int, _frame: object) -> NoReturn:
    """Ends us by an exception, so that what is half made goes away."""
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise Stopped


def main(request: dict[str, Any]) -> int:
    """One act; see above."""
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, stop)
    os.umask(0o022)
    act = ACTS[request.pop("act")]
    try:
        answer = act(**request)
    except RefusalError as refused:
        answer = {"refused": refused.kind, "what": refused.what}
    except Stopped:
        return 128 + signal.SIGTERM
    except OSError as error:
        kind = KINDS.get(error.errno or 0, "failed")
        answer = {"refused": kind, "what": f"{error.filename}: {error.strerror}"}
    print(json.dumps(answer), flush=True)
    return 1 if "refused" in answer else 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
