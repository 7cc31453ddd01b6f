"""What the exit code of a program means, to somebody who has to do something about it.

cogrid's own codes, those of ``timeout`` and of the shell, signals (128 + number), and the codes
with which systemd says which step before the program failed (systemd.exec(5), "Process exit
codes"). They do not overlap: a shell's go to 192, systemd's begin at 200.
"""

from __future__ import annotations

from dataclasses import dataclass

SIGNALED = 128
"""A shell adds the signal's number to it."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """name: in capitals where it has one, such as 203/EXEC and 139/SIGSEGV; else "". what: half a
    sentence that goes on after "it". cure: what to do, "" where nothing is wrong."""

    name: str
    what: str
    cure: str = ""


def exit_meaning(code: int) -> Meaning:
    """Of a program that has ended by itself, as systemd, a shell or SSH tells it."""
    if found := _CODES.get(code):
        return found
    if SIGNALED < code <= SIGNALED + 64:
        return signal_meaning(code - SIGNALED)
    if step := _STEPS.get(code):
        return Meaning(step[0], f"was not started: systemd could not {step[1]}", step[2])
    return Meaning("", "failed", _LOOK)


def signal_meaning(number: int) -> Meaning:
    """Of a program that a signal has ended; numbers are Linux'."""
    name, what, cure = _SIGNALS.get(number, (f"signal {number}", "was ended by a signal", _LOOK))
    return Meaning(name, what, cure)


_LOOK = "its last lines say why"

_CODES = {
    0: Meaning("", "ended as it was told to, or had done its work"),
    1: Meaning("", "failed", _LOOK),
    2: Meaning("", "was called wrongly, or its configuration is wrong", "its last lines name each"),
    3: Meaning("", "found something wrong, such as a model that failed", "its last lines name it"),
    4: Meaning(
        "",
        "could not reach Redis, or may not use it as it is",
        "its last lines name the address and the cause",
    ),
    5: Meaning("", "could not ask some hosts", "its last lines name them"),
    75: Meaning(
        "TEMPFAIL",
        "has stopped because another machine has taken its worker's name",
        "give one of the two another name (--id), then start it again",
    ),
    124: Meaning("", "had not ended when its time was up, and was cut off there"),
    125: Meaning("", "was not started: `timeout` itself failed", _LOOK),
    126: Meaning(
        "",
        "was not started: the file may not be executed",
        "is it a program, for this processor, on a disk that is not mounted noexec?",
    ),
    127: Meaning(
        "",
        "was not started: there is no such program",
        "its path, or the interpreter that its first line names, is gone: install again",
    ),
    130: Meaning("SIGINT", "was interrupted from a keyboard"),
    255: Meaning("", "failed, or the connection did", _LOOK),
}  # fmt: skip

_SIGNALS = {
    1: ("SIGHUP", "ended with the terminal that it was started from", "make it a service"),
    2: ("SIGINT", "was interrupted from a keyboard", ""),
    4: ("SIGILL", "met an instruction that this processor has not", "install wheels for it"),
    6: ("SIGABRT", "was aborted, as systemd's watchdog does with what hangs", _LOOK),
    7: ("SIGBUS", "lost a file that it had mapped, or its disk failed", "look at the kernel's log"),
    9: (
        "SIGKILL",
        "was killed, by somebody or by the kernel for want of memory",
        "the kernel's log says whether memory was short",
    ),
    11: ("SIGSEGV", "crashed", "install again; if it goes on, tell us with its last lines"),
    13: ("SIGPIPE", "wrote to somebody who had gone", ""),
    15: ("SIGTERM", "was told to end before it could say goodbye", ""),
    24: ("SIGXCPU", "has used up the time of the processor that it may have", "raise LimitCPU="),
    31: ("SIGSYS", "asked the kernel for what the unit forbids", "a drop-in can allow it"),
}  # fmt: skip

_FILE = "look at that line of the unit"
_STEPS = {
    200: ("CHDIR", "go to its working directory", "make it, or change WorkingDirectory="),
    201: ("NICE", "set its priority", _FILE),
    202: ("FDS", "hand it its files", _FILE),
    203: (
        "EXEC",
        "execute the program",
        "is the first word of ExecStart= there, executable, with an interpreter that is there?",
    ),
    204: ("MEMORY", "have the memory for it", "free memory"),
    205: ("LIMITS", "set its limits", _FILE),
    206: ("OOM_ADJUST", "set what the kernel kills first", _FILE),
    207: ("SIGNAL_MASK", "set its signals", _FILE),
    208: ("STDIN", "open its input", _FILE),
    209: ("STDOUT", "open its output", "is the journal running?"),
    210: ("CHROOT", "change its root directory", _FILE),
    211: ("IOPRIO", "set its priority at the disk", _FILE),
    212: ("TIMERSLACK", "set its timers", _FILE),
    213: ("SECUREBITS", "set its rights", _FILE),
    214: ("SETSCHEDULER", "set its scheduling", _FILE),
    215: ("CPUAFFINITY", "set its processors", _FILE),
    216: ("GROUP", "become its group", "make the group, or change Group="),
    217: ("USER", "become its user", "make the user, or change User="),
    218: ("CAPABILITIES", "give up its rights", _FILE),
    219: ("CGROUP", "set up its control group", _FILE),
    220: ("SETSID", "begin its session", _FILE),
    221: ("CONFIRM", "have it confirmed", _FILE),
    222: ("STDERR", "open its error output", "is the journal running?"),
    224: ("PAM", "open its session with PAM", "look at the log of PAM"),
    225: ("NETWORK", "set up its network", _FILE),
    226: (
        "NAMESPACE",
        "set up what it may see",
        "a directory that the unit names is missing, or this is a container without that right",
    ),
    227: ("NO_NEW_PRIVILEGES", "keep it from gaining rights", _FILE),
    228: ("SECCOMP", "limit what it may ask of the kernel", "the kernel lacks it: use a drop-in"),
    229: ("SELINUX_CONTEXT", "set its SELinux context", _FILE),
    230: ("PERSONALITY", "set its kind of machine code", _FILE),
    231: ("APPARMOR_PROFILE", "set its AppArmor profile", _FILE),
    232: ("ADDRESS_FAMILIES", "limit its sockets", "the kernel lacks it: use a drop-in"),
    233: ("RUNTIME_DIRECTORY", "make its directory in /run", "is the disk full?"),
    235: ("CHOWN", "give a socket to its user", _FILE),
    236: ("SMACK_PROCESS_LABEL", "set its label", _FILE),
    237: ("KEYRING", "set up its keyring", _FILE),
    238: ("STATE_DIRECTORY", "make its directory in /var/lib", "is the disk full or read-only?"),
    239: ("CACHE_DIRECTORY", "make its directory in /var/cache", "is the disk full or read-only?"),
    240: ("LOGS_DIRECTORY", "make its directory in /var/log", "is the disk full or read-only?"),
    241: ("CONFIGURATION_DIRECTORY", "make its directory in /etc", "is the disk full?"),
    242: ("NUMA_POLICY", "set where its memory is", _FILE),
    243: ("CREDENTIALS", "read its credentials", "is the file of LoadCredential= there?"),
    245: ("BPF", "limit it with BPF", "the kernel lacks it: use a drop-in"),
}  # fmt: skip
