"""No secret of an installation is seen by others, there or here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cogrid.config import load
from cogrid.ops.install.fleet import install, look_at
from cogrid.remote.answers import Asked
from tests.hosts.host import Host
from tests.hosts.installing import (
    ENVIRONMENT,
    PASSWORD,
    UNIT,
    Site,
)

pytestmark = pytest.mark.timeout(300)
"""The first one waits for a real installation, which takes a minute on a busy machine."""


def test_no_secret_is_seen_by_others_on_either_side(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secrets = {"redis": PASSWORD, "sudo": "sud0-pw", "phrase": "phr4se-pw", "api": "sk-api-k3y"}
    host = site.host
    host.login("carol", sudo="ALL=(ALL) ALL")
    host.login("mallory")
    host.ssh(f"echo 'carol:{secrets['sudo']}' | chpasswd")
    key = _locked_key(host, "carol", secrets["phrase"], tmp_path)
    watch = _watched(host)
    asked = Asked(
        password=lambda _h, _w: None,
        passphrase=lambda _f, wrong: None if wrong else secrets["phrase"],
        sudo=lambda _h, wrong: None if wrong else secrets["sudo"],
    )
    config = tmp_path / "ssh_config"
    usual = (host.place / "ssh_config").read_text()
    config.write_text(usual.replace("User root", "User carol").replace(str(host.key), str(key)))
    access = replace(host.access, asked=asked, config=config)
    with_key = {**site.env, "COGRID_WORKER_ENGINE_KEY": secrets["api"]}
    order = replace(site.order(), config=load(None, with_key))
    found = look_at([site.named(slots=2, user="cogrid")], order, access, site.store, print)
    done = install(found, order, access, site.store, print)
    assert done.hosts[0].state == "installed", done
    assert site.host.ssh(f"grep -c {secrets['api']} {ENVIRONMENT}") == "1"
    seen = _look_around(host, watch)
    said = capfd.readouterr()
    ours = "\n".join((said.out, said.err, caplog.text, repr(found), repr(done), repr(access)))
    for name, secret in secrets.items():
        assert secret.partition(" ")[0] not in seen, f"the {name} secret is readable there"
        assert secret.partition(" ")[0] not in ours, f"the {name} secret is shown here"


def _locked_key(host: Host, user: str, phrase: str, tmp_path: Path) -> Path:
    """A key with a passphrase that lets the user in, and no other does."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", str(key)], check=True)
    home = host.root / "home" / user / ".ssh"
    (home / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    return key


def _watched(host: Host) -> str:
    """Somebody without rights looks at processes and files meanwhile; where that is noted."""
    host.write("/srv/watch", WATCH, 0o755)
    host.ssh("setsid runuser -u mallory -- sh /srv/watch </dev/null >/dev/null 2>&1 &")
    return "/tmp/mallory.seen"


WATCH = """\
while :; do
    cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'
    find /tmp /var/tmp /run /opt /etc /var/lib/cogrid* -newer /srv/watch -type f -size -100k \
        -exec cat {} + 2>/dev/null
done | grep -aE --line-buffered 's3cre[t]|sud0-p[w]|phr4se-p[w]|sk-api-k3[y]' >/tmp/mallory.seen
"""


def _look_around(host: Host, seen: str) -> str:
    """All that mallory has seen, and can read now."""
    host.ssh("pkill -u mallory; rm -f /srv/watch", check=False)
    script = f"""
cat {seen}
runuser -u mallory -- sh -c 'systemctl cat {UNIT}; systemctl show {UNIT}; ps -efww; journalctl;
    grep -rasE "s3cre[t]|sud0-p[w]|phr4se-p[w]|sk-api-k3[y]" \\
        /etc /opt/cogrid/current/bin /tmp /run /var/log' 2>/dev/null
rm -f {seen}
"""
    return host.ssh(script, check=False)
