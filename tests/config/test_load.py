"""File, environment, command line: what wins, and everything that is wrong at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from cogrid.config import Config, ConfigError, load, state_dir
from cogrid.errors import Exit
from cogrid.model.limits import Limits

ROOT = Path(__file__).parents[2]
A_NAME = "a name of a-z 0-9 . _ - that begins with a letter or digit, not 'shared'"
A_SERVER = "redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without any configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(text: str = "", flags: Mapping[str, object] | None = None, **env: str) -> Config:
    Path("cogrid.toml").write_text(text, encoding="utf-8")
    return load(None, env, flags)


def problems(text: str = "", flags: Mapping[str, object] | None = None, **env: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(text, flags, **env)
    assert caught.value.exit_code is Exit.USAGE
    return list(caught.value.problems)


class TestSources:
    def test_nothing_set_gives_the_defaults(self) -> None:
        assert load(None, {}) == Config()

    def test_the_later_source_wins(self) -> None:
        text = '[worker]\nid = "file"\npool = "gpu"\nslots = 2\n'
        config = loaded(
            text,
            {"worker.slots": 4, "worker.pool": None},
            COGRID_WORKER_SLOTS="3",
            COGRID_WORKER_ID="env",
        )
        assert (config.worker.id, config.worker.pool, config.worker.slots) == ("env", "gpu", 4)

    def test_every_type_from_the_environment(self) -> None:
        config = load(
            None,
            {
                "COGRID_LIMITS_LEASE_S": "30",
                "COGRID_LIMITS_QUEUE_MAX": "5",
                "COGRID_COORDINATOR_ACCESS_LOG": "No",
                "COGRID_ROUTING_POOLS": "cpu, gpu,",
                "COGRID_PREFIX": "{cogrid}:",
            },
        )
        assert config.limits == Limits(lease_s=30.0, queue_max=5)
        assert config.coordinator.access_log is False
        assert config.routing.pools == ("cpu", "gpu")
        assert config.redis.prefix == "{cogrid}:"

    def test_every_type_from_the_file(self) -> None:
        config = loaded(
            "[limits]\nlease_s = 30\nqueue_max = 5\n[coordinator]\naccess_log = false\n"
            '[worker]\nmodels = ["gemma3:latest", "b:1"]\n'
        )
        assert config.limits == Limits(lease_s=30.0, queue_max=5)
        assert config.coordinator.access_log is False
        assert config.worker.models == ("gemma3", "b:1")
        assert config.file == "cogrid.toml"

    def test_which_file(self, tmp_path: Path) -> None:
        for name in (
            "named.toml",
            "env.toml",
            "xdg/cogrid/cogrid.toml",
            "home/.config/cogrid/cogrid.toml",
        ):
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'[worker]\nid = "{name[:3]}"\n')
        env = {"HOME": str(tmp_path / "home")}
        assert load(None, env).worker.id == "hom"
        env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
        assert load(None, env).worker.id == "xdg"
        (tmp_path / "cogrid.toml").write_text('[worker]\nid = "cwd"\n')
        assert load(None, env).worker.id == "cwd"
        env["COGRID_CONFIG"] = str(tmp_path / "env.toml")
        assert load(None, env).worker.id == "env"
        assert load(str(tmp_path / "named.toml"), env).worker.id == "nam"

    def test_a_named_file_must_be_there(self) -> None:
        with pytest.raises(ConfigError, match=r"nope\.toml: there is no such file"):
            load("nope.toml", {})
        with pytest.raises(ConfigError, match=r"nope\.toml: there is no such file"):
            load(None, {"COGRID_CONFIG": "nope.toml"})

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"[worker\n", "cogrid.toml: is not TOML: "),
            (b'[worker]\nid = "\xff"\n', "cogrid.toml: is not UTF-8 text"),
        ],
    )
    def test_a_file_that_cannot_be_read(self, content: bytes, says: str) -> None:
        Path("cogrid.toml").write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load(None, {})
        assert caught.value.problems[0].startswith(says)


class TestWrong:
    def test_everything_at_once_with_its_place(self) -> None:
        text = (
            "# a comment\n"
            "[limits]\n"
            "lease = 20\n"
            'renew_s = "5"\n'
            "\n"
            "[wroker]\n"
            'id = "x"\n'
            "[worker]\n"
            'id = "Shared Host"\n'
            'listen = "127.0.0.1:1"\n'
        )
        assert problems(
            text, {"worker.slots": "many"}, COGRID_LIMITS_ATTEMPTS="0", COGRID_REDS_URL="x"
        ) == [
            "cogrid.toml:3: limits.lease is unknown; did you mean lease_s?",
            "cogrid.toml:6: wroker is unknown; did you mean worker?",
            "cogrid.toml:10: worker.listen is unknown; listen is a key of [coordinator]",
            "COGRID_REDS_URL is unknown; did you mean COGRID_REDIS_URL?",
            "cogrid.toml:4: limits.renew_s is '5': without quotes: it is of type float",
            f"cogrid.toml:9: worker.id is 'Shared Host': write {A_NAME}",
            "COGRID_LIMITS_ATTEMPTS: limits.attempts is '0': write more than 0",
            "command line: worker.slots is 'many': write a whole number",
        ]

    def test_the_message_counts(self) -> None:
        with pytest.raises(ConfigError) as caught:
            load(None, {"COGRID_WORKER_SLOTS": "x"})
        assert caught.value.message == (
            "1 thing is wrong in the configuration:\n"
            "COGRID_WORKER_SLOTS: worker.slots is 'x': write a whole number"
        )

    @pytest.mark.parametrize(
        ("key", "text", "says"),
        [
            ("LIMITS_LEASE_S", "nan", "write a number"),
            ("LIMITS_LEASE_S", "-1", "write more than 0"),
            ("LIMITS_BACKOFF_S", "-1", "write 0 or more"),
            ("LIMITS_QUEUE_MAX", "1.5", "write a whole number"),
            ("COORDINATOR_ACCESS_LOG", "maybe", "write true or false"),
            ("COORDINATOR_LISTEN", "8700", "write ADDRESS:PORT, such as 127.0.0.1:8700"),
            ("COORDINATOR_LISTEN", "::1:8700", "write [::1]:8700"),
            ("COORDINATOR_LISTEN", "127.0.0.1:70000", "write ADDRESS:PORT"),
            ("COORDINATOR_STATUS_LINE", "yes", "write headers, always or never"),
            ("COORDINATOR_TRUSTED_PROXIES", "10.0.0.0/8,nginx", "'nginx': write an address"),
            ("REDIS_PREFIX", "a b", "write at most 64 characters without spaces"),
            ("CLIENT_URL", "127.0.0.1:8700", "write http://HOST:PORT"),
            ("CLIENT_URL", "http://h:99999", "write http://HOST:PORT"),
            ("WORKER_ENGINE", "ollama", "write the engine's address"),
            ("WORKER_SLOTS", "-1", "write 0 (as the engine says) to 1024"),
            ("WORKER_POOL", "shared", "write a name"),
            ("LOG_FORMAT", "xml", "write text or json"),
            ("LOG_LEVEL", "loud", "write debug, info, warning or error"),
            ("ROUTING_POOLS", "gpu,Big Pool", "'Big Pool': write a name"),
        ],
    )
    def test_what_is_right_instead(self, key: str, text: str, says: str) -> None:
        found = problems("", None, **{f"COGRID_{key}": text})
        assert len(found) == 1
        assert found[0].startswith(f"COGRID_{key}: ")
        assert f" is {text!r}: " in found[0]
        assert says in found[0]

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("COORDINATOR_LISTEN", "[::1]:8700"),
            ("COORDINATOR_LISTEN", "0.0.0.0:0"),
            ("WORKER_ENGINE", "http://127.0.0.1:11434"),
            ("WORKER_ENGINE", "demo"),
            ("REDIS_URL", "unix:///run/redis.sock"),
            ("LIMITS_BACKOFF_S", "0"),
            ("LIMITS_RECOVERIES", "0"),
        ],
    )
    def test_what_is_right(self, key: str, text: str) -> None:
        load(None, {f"COGRID_{key}": text})

    def test_wrong_types_in_the_file(self) -> None:
        text = "[worker]\nid = 5\nslots = true\nmodels = 'a'\n[limits]\nattempts = 2.0\n"
        assert [problem.rpartition(": ")[2] for problem in problems(text)] == [
            "write a text",
            "write a whole number",
            "it is of type tuple",
            "write a whole number",
        ]

    def test_a_section_is_a_table(self) -> None:
        assert problems("worker = 5\n") == ["cogrid.toml:1: worker: write it as a table [worker]"]
        assert problems("domain = 5\n") == [
            "cogrid.toml:1: domain: write each rule as a table [[domain]]"
        ]

    def test_variables_that_are_no_keys(self) -> None:
        assert problems(COGRID_LIMITS_NOPE="1")[0].startswith("COGRID_LIMITS_NOPE is unknown")

    def test_variables_that_are_meant_for_others(self) -> None:
        assert load(None, {"COGRID_TEST_SCALE": "0.1", "COGRID_DEMO_DELAY_S": "0"}) == Config()


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "wrong"),
        [
            ({"LEASE_S": "15"}, None),
            ({"LEASE_S": "14.9"}, "a lease is at least 3 renewals: 15 s or more"),
            ({"GHOST_AFTER_S": "12"}, None),
            ({"GHOST_AFTER_S": "11.9"}, "polls (block_s) and 2 s: 12 s or more"),
            ({"TICK_S": "3.1"}, "passes come within pass_window_s: 3 s or less"),
            ({"ORPHAN_GRACE_S": "5"}, "below orphan_grace_s, which is 5 s"),
            ({"BACKOFF_S": "31"}, "not below backoff_s, which is 31 s"),
            ({"QUARANTINE_S": "301"}, "not below quarantine_s, which is 301 s"),
        ],
    )
    def test_limits_that_contradict_each_other(
        self, limits: dict[str, str], wrong: str | None
    ) -> None:
        env = {f"COGRID_LIMITS_{key}": value for key, value in limits.items()}
        if wrong is None:
            load(None, env)
            return
        with pytest.raises(ConfigError) as caught:
            load(None, env)
        assert len(caught.value.problems) == 1
        assert caught.value.problems[0].endswith(wrong)

    def test_the_place_is_that_of_the_limit_which_was_set(self) -> None:
        assert problems("[limits]\nrenew_s = 7\n") == [
            "cogrid.toml:2: limits.lease_s is 20: a lease is at least 3 renewals: 21 s or more"
        ]

    def test_the_time_scale_multiplies_every_duration(self) -> None:
        config = load(None, {"COGRID_TIME_SCALE": "0.1", "COGRID_LIMITS_LEASE_S": "30"})
        assert config.time_scale == 0.1
        assert config.limits.lease_s == pytest.approx(3.0)
        assert config.limits.ghost_after_s == pytest.approx(1.5)
        assert config.limits.attempts == 3
        assert config.limits.prompt_tokens_per_s == 10.0

    @pytest.mark.parametrize("text", ["0", "-1", "fast", "nan", "inf"])
    def test_a_wrong_time_scale(self, text: str) -> None:
        assert problems(COGRID_TIME_SCALE=text) == [
            f"COGRID_TIME_SCALE is {text!r}: write a number above 0, at most 1000"
        ]


class TestSecrets:
    def test_they_are_never_shown(self) -> None:
        config = load(
            None,
            {
                "COGRID_REDIS_URL": "redis://:hush@h:1/0",
                "COGRID_REDIS_PASSWORD": "hush",
                "COGRID_CLIENT_API_KEY": "hush",
                "COGRID_WORKER_ENGINE_KEY": "hush",
            },
        )
        assert "hush" not in repr(config)
        assert config.redis.password == config.client.api_key == "hush"
        assert config.worker.engine_key == "hush"

    def test_not_in_an_error_either(self) -> None:
        assert problems("[redis]\npassword = ['hush']\n", COGRID_REDIS_URL="hush") == [
            "cogrid.toml:2: redis.password: write a text",
            f"COGRID_REDIS_URL: redis.url: write {A_SERVER}",
        ]

    def test_a_file_holds_the_password(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("hush\n")
        assert loaded('[redis]\npassword_file = "secret"\n').redis.password == "hush"
        env = {"COGRID_REDIS_PASSWORD_FILE": str(tmp_path / "secret")}
        assert load(None, env).redis.password == "hush"
        assert load(None, {**env, "COGRID_REDIS_PASSWORD": "louder"}).redis.password == "louder"

    def test_a_file_holds_the_engines_key(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("sk-1\n")
        assert loaded('[worker]\nengine_key_file = "key"\n').worker.engine_key == "sk-1"
        (tmp_path / "key").write_text("sk-1\r\nX-Other: 1\n")
        (problem,) = problems('[worker]\nengine_key_file = "key"\n')
        says = "write the key alone, without spaces or line breaks"
        assert problem == f"cogrid.toml:2: worker.engine_key_file key: {says}"

    def test_beside_the_file_that_names_it(self, tmp_path: Path) -> None:
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc/secret").write_text("hush")
        (tmp_path / "etc/cogrid.toml").write_text('[redis]\npassword_file = "secret"\n')
        assert load("etc/cogrid.toml", {}).redis.password == "hush"

    def test_a_password_file_that_is_of_no_use(self) -> None:
        assert problems(COGRID_REDIS_PASSWORD_FILE="none") == [
            "COGRID_REDIS_PASSWORD_FILE: redis.password_file none: No such file or directory"
        ]
        Path("empty").touch()
        assert problems(COGRID_REDIS_PASSWORD_FILE="empty") == [
            "COGRID_REDIS_PASSWORD_FILE: redis.password_file empty: it is empty"
        ]


def test_the_state_directory() -> None:
    assert state_dir(Config(), {"HOME": "/h"}) == Path("/h/.local/state/cogrid")
    assert state_dir(Config(), {"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/cogrid")
    config = load(None, {"COGRID_WORKER_STATE_DIR": "/var/lib/cogrid"})
    assert state_dir(config, {"HOME": "/h"}) == Path("/var/lib/cogrid")


def test_it_loads_nothing_that_costs_time() -> None:
    """The command line reads its configuration before everything else."""
    code = "import sys; old = {*sys.modules}; import cogrid.config; print(*{*sys.modules} - old)"
    command = (sys.executable, "-c", code)
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    costly = {"msgspec", "tomllib", "difflib", "redis", "click", "httpx"}
    assert costly & set(done.stdout.split()) == set()
