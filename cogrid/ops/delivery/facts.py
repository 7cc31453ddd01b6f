"""Run by every Python 3 that is found on a host, however old: one line of JSON about itself.

It is sent as text and knows nothing of cogrid. Python 3.4 must be able to read it, so that an old
one can be named with its version: no f-strings.
"""

import glob
import json
import os
import platform
import re
import struct
import subprocess
import sys
import sysconfig


def executable() -> str:
    """Ours, or the one that our environment was made from; with its number where a name without
    one stands beside it, since that name will mean another Python after an upgrade."""
    path = os.path.abspath(getattr(sys, "_base_executable", None) or sys.executable)
    real = os.path.realpath(path)
    return real if os.path.dirname(real) == os.path.dirname(path) else path


def glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


def musl() -> str:
    """Its loader says its version when it is called without a program."""
    for loader in glob.glob("/lib/ld-musl-*.so.1"):
        said = subprocess.Popen([loader], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = re.search(r"Version (\d+\.\d+)", said.communicate()[0].decode("ascii", "replace"))
        if found:
            return "musl " + found.group(1)
    return ""


def has_venv() -> bool:
    try:
        import venv
    except ImportError:
        return False
    return bool(venv)


def markers() -> dict:  # type: ignore[type-arg]  # dict[str, str] needs Python 3.9
    numbers = [str(number) for number in sys.version_info[:3]]
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": ".".join(numbers),
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "platform_python_implementation": platform.python_implementation(),
        "python_version": ".".join(numbers[:2]),
        "sys_platform": sys.platform,
    }


print(
    json.dumps(
        {
            "path": executable(),
            "version": list(sys.version_info[:3]),
            "bits": struct.calcsize("P") * 8,
            "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            "libc": glibc() or musl(),
            "venv": has_venv(),
            "markers": markers(),
        }
    )
)
