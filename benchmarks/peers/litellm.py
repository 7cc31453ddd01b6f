"""LiteLLM's proxy before the same engine, in a virtual environment of its own.

One process with an explicit list of models, as its documentation starts it. Installing it takes
minutes, so it is done once and kept in the user's cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

from benchmarks.mock_answers import MODELS
from benchmarks.process import Process, free_port

PACKAGE = "litellm[proxy]"
START_S = 120.0


def environment() -> Path:
    """The virtual environment's directory; it is made and filled where it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "cogrid-bench" / "litellm"
    if not _program(place).exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run(
            (place / "bin" / "python", "-m", "pip", "install", "--quiet", PACKAGE), check=True
        )
    return place


def version(place: Path) -> str:
    """What is installed there."""
    code = "import importlib.metadata as m; print(m.version('litellm'))"
    words = (str(place / "bin" / "python"), "-c", code)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def start(place: Path, engine: str, logs: Path) -> tuple[Process, str]:
    """The proxy and its address, once it answers."""
    port = free_port()
    config = logs / "litellm.json"
    config.write_text(json.dumps(_config(engine)))
    words = (
        str(_program(place)), "--config", str(config), "--host", "127.0.0.1", "--port", str(port),
        "--num_workers", "1", "--telemetry", "False",
    )  # fmt: skip
    env = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        # No key: it then has the least to do, as the grid without one.
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    process = Process("litellm", words, logs, env)
    url = f"http://127.0.0.1:{port}"
    try:
        process.await_answer(f"{url}/health/liveliness", START_S)
    except BaseException:
        process.stop()
        raise
    return process, url


def _config(engine: str) -> dict[str, object]:
    """JSON is YAML too."""
    return {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {
                    "model": f"openai/{name}",
                    "api_base": f"{engine}/v1",
                    "api_key": "none",
                },
            }
            for name in MODELS
        ],
    }


def _program(place: Path) -> Path:
    return place / "bin" / "litellm"
