"""A plan is carried out on a host, step by step, and proved; what fails is taken back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from cogrid.errors import CogridError, Exit, HostError
from cogrid.model.host import Role, Scope
from cogrid.ops.delivery.stage import SYSTEM, Staged, prune, stage, staging, switch
from cogrid.ops.install import steps
from cogrid.ops.install.grid import Grid
from cogrid.ops.install.inspect import Job, Tell
from cogrid.ops.install.order import authorities_path, base_of, state_directory
from cogrid.ops.install.others import Other
from cogrid.ops.install.plan import Act, Todo
from cogrid.ops.install.undoing import GRACE_S, Step, Undoing
from cogrid.ops.unit.explain import Word, explain
from cogrid.ops.unit.state import SHOW, UnitState, parse_state
from cogrid.remote.connection import Connection

LOOK_S = 0.5
"""Seconds between two looks at a unit that starts."""
LAST_LINES = 20
"""Of the journal, shown where a unit does not start."""
_FAILED = (Word.FAILED, Word.RESTARTING, Word.BROKEN, Word.MASKED, Word.NOT_INSTALLED)
"""Not stopped: so it is called while it waits for its turn, such as for the network."""
_STARTS = (Act.START, Act.ACTIVE, Act.POLLED)
_ASK_COORDINATOR = """\
exec "$1" -I -S -c 'import http.client, sys
link = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=3)
link.request("GET", "/healthz")
sys.exit(link.getresponse().status != 200)' "$2" "$3" 2>/dev/null
"""


class NotDoneError(CogridError):
    """A host is not as was asked for. step: the one that failed. lines: the last of the journal."""

    exit_code = Exit.SOME_HOSTS

    def __init__(
        self, step: str, message: str, hint: str = "", lines: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint)
        self.step = step
        self.lines = lines


def carry_out(
    connection: Connection, job: Job, grid: Grid, tell: Tell, again: Callable[[], Connection]
) -> None:
    """Do it and prove it. NotDoneError: the host is as it was, or the error says what of it is not.
    again: a new connection to the same host, where this one is gone. tell: gets each step."""
    work = Carrying(connection, job, grid, tell)
    try:
        work.undoing.begin()
    except CogridError as error:
        raise NotDoneError("begin", error.message, error.hint) from error
    try:
        work.run()
    except CogridError as error:
        lines = work.journal()
        left = work.take_back(again)
        raise NotDoneError(work.step, f"{error.message}; {left}", error.hint, lines) from error
    except BaseException:
        work.take_back(again)
        raise


class Carrying:
    """One host's plan while it is carried out. step: the one at work."""

    def __init__(
        self,
        connection: Connection,
        job: Job,
        grid: Grid,
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.undoing = Undoing(connection, job.scope)
        self.step = "begin"
        self._connection = connection
        self._job = job
        self._unit = job.settings.unit_name
        self._root = job.scope is Scope.SYSTEM
        self._grid = grid
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._staged: Staged | None = None
        self._drained = False
        self._since_ms = 0
        self._since_s = ""

    def run(self) -> None:
        """Every step, then nothing is taken back any more."""
        if self._job.plan.running:
            self.undoing.step(steps.go_on(self._unit))
        for todo in self._job.plan.steps:
            self.step = todo.act.value
            self._tell(todo.what)
            self._do(todo)
        self._resume()
        self.step = "keep"
        self.undoing.keep()
        self._prune()

    def _do(self, todo: Todo) -> None:
        settings, rendered = self._job.settings, self._job.rendered
        assert rendered is not None
        match todo.act:
            case Act.USER:
                self.undoing.step(steps.add_user(settings.user))
            case Act.INSTALL:
                self._install()
            case Act.AUTHORITIES:
                path = authorities_path(self._job.scope, self._job.login)
                self._write("authorities", path, self._job.authorities, 0o644)
            case Act.ENVIRONMENT:
                path, text = rendered.environment_path, rendered.environment_text
                self._write("environment", path, text, 0o600)
            case Act.UNIT:
                self._write("unit", rendered.unit_path, rendered.unit_text, 0o644, reload=True)
            case Act.SWITCH:
                self._switch()
            case Act.DRAIN:
                self._drain()
            case Act.ENABLE:
                self.undoing.step(steps.enable(self._unit))
            case Act.START:
                self._start()
            case Act.ACTIVE:
                self._await(lambda state: state.running)
            case Act.POLLED:
                self._await(lambda _: self._proved())
            case Act.REPLACE | Act.FREEZE | Act.END:
                assert todo.other is not None
                self.undoing.step(_about(todo.act, todo.other))

    def _install(self) -> None:
        bundle, scope = self._job.bundle, self._job.scope
        assert bundle is not None

        def put() -> None:
            self._staged = stage(self._connection, bundle, scope, self._tell)

        base = base_of(scope, self._job.login)
        known_by = staging(SYSTEM if scope is Scope.SYSTEM else "", bundle.name)
        self.undoing.by_hand(steps.install(base, bundle.name, known_by), put)

    def _switch(self) -> None:
        back = self._job.back
        staged = back or self._staged
        assert staged is not None
        before = steps.switch(staged.base)
        self.undoing.by_hand(
            before, lambda: _ignored(switch(self._connection, staged, back is not None))
        )

    def _write(self, name: str, path: str, text: str, mode: int, reload: bool = False) -> None:
        content = text.encode()
        self.undoing.by_hand(
            steps.place(name, path, reload),
            lambda: self._connection.put(path, content, mode=mode, root=self._root),
        )
        if reload:
            self.undoing.step(steps.reload())

    def _drain(self) -> None:
        self._drained = self._grid.drained(
            self._job.settings.id, lambda: self.undoing.still("drain")
        )

    def _start(self) -> None:
        self._since_ms = self._grid.now_ms()
        state = state_directory(self._job.settings, self._job.login)
        self._since_s = self.undoing.step(steps.start(self._unit, state))

    def _await(self, done: Callable[[UnitState], bool]) -> None:
        """Look until it is so. NotDoneError where the unit fails, or that takes too long."""
        limit_s = self._grid.limits.start_timeout_s
        end_s = self._clock() + limit_s
        while True:
            self.undoing.still(self.step)
            state = self._state()
            said = explain(state, self._job.scope)
            if said.word in _FAILED:
                raise NotDoneError(self.step, said.what, said.cure)
            if done(state):
                return
            if self._clock() > end_s:
                raise NotDoneError(
                    self.step, f"{said.what}, but {self._lacks()} within {limit_s:g} s"
                )
            self._sleep(LOOK_S)

    def _state(self) -> UnitState:
        scope = "--system" if self._root else "--user"
        said = self._connection.run(
            'XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}" exec systemctl "$@"',
            scope, *SHOW, self._unit, root=self._root,
        )  # fmt: skip
        return parse_state(said.text)

    def _proved(self) -> bool:
        settings, seen = self._job.settings, self._job.seen
        match settings.role:
            case Role.WORKER:
                return self._grid.polls(settings.id, self._since_ms, seen.instance)
            case Role.REAPER:
                return self._grid.passes(self._since_ms)
            case Role.COORDINATOR:
                return self._answers(settings.listen)

    def _answers(self, listen: str) -> bool:
        """Asked on the host itself: whether others reach it is another question."""
        assert self._job.python is not None
        host, _, port = listen.rpartition(":")
        bare = host.strip("[]")
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)
        path = self._job.python.path
        return not self._connection.run(_ASK_COORDINATOR, path, here, port).code

    def _lacks(self) -> str:
        return {
            Role.WORKER: "the grid has not seen it poll",
            Role.REAPER: "no pass has begun",
            Role.COORDINATOR: "it does not answer",
        }[self._job.settings.role]

    def _resume(self) -> None:
        if self._drained:
            self._drained = False
            self._grid.resume(self._job.settings.id)

    def _prune(self) -> None:
        """Old installations; what cannot be removed harms nobody."""
        if self._staged is not None and self._job.python is not None:
            with suppress(CogridError):
                prune(self._connection, self._job.scope, self._job.python)

    def journal(self) -> tuple[str, ...]:
        """The unit's last lines since it was started here; () where that is not what failed."""
        if self.step not in _STARTS or not self._since_s:
            return ()
        unit = "--unit" if self._root else "--user-unit"
        words = (f"{unit}={self._unit}", f"--since=@{self._since_s}", f"--lines={LAST_LINES}")
        with suppress(CogridError):
            said = self._connection.run(
                'exec journalctl --quiet --no-pager --output=cat "$@"', *words, root=self._root
            )
            return tuple(said.text.splitlines())
        return ()

    def take_back(self, again: Callable[[], Connection]) -> str:
        """Have the host take everything back; how that went."""
        with suppress(CogridError):
            self._resume()
        try:
            self.undoing.back()
        except HostError:
            return self._take_back_anew(again)
        except CogridError as error:
            return error.message
        return "it was taken back: the host is as it was"

    def _take_back_anew(self, again: Callable[[], Connection]) -> str:
        """The connection is gone, so the guard is at it already."""
        try:
            with again() as connection:
                Undoing(connection, self._job.scope).back()
        except HostError:
            return f"the host cannot be reached now; it takes everything back within {GRACE_S:g} s"
        except CogridError as error:
            return error.message
        return "the host has taken it back and is as it was"


def _about(act: Act, other: Other) -> Step:
    match act:
        case Act.FREEZE:
            return steps.freeze(other.pid, other.started)
        case Act.END:
            return steps.end(other.pid, other.started)
        case _:
            return steps.replace(other.unit, other.enabled, other.active)


def _ignored(_: object) -> None:
    """What a step gives back that nobody needs."""
