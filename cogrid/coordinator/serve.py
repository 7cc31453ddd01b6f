"""Runs a coordinator: uvicorn around the application, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
import uvloop

from cogrid import __version__
from cogrid.config import Config
from cogrid.coordinator.access import is_loopback
from cogrid.coordinator.app import App
from cogrid.coordinator.errors import RefusedError
from cogrid.coordinator.services import Services
from cogrid.coordinator.wire import Wire
from cogrid.errors import UsageError
from cogrid.notify import Notify
from cogrid.store.address import Address
from cogrid.store.refusal import StoreError

log = logging.getLogger(__name__)

GRACE_S = 30.0
"""How long streams may go on after SIGTERM; what is not over then ends in an error. The unit gives
it 60 s to end."""
LOOK_S = 0.5
"""A Redis that is there answers in milliseconds; to be sure of one that is silent takes 8 s."""
LAST_S = 2.0
KEEP_ALIVE_S = 75
BACKLOG = 2048


class Coordinator:
    """A coordinator that can be started in any loop. listening: the addresses, once it is."""

    def __init__(self, config: Config, address: Address, grace_s: float = GRACE_S) -> None:
        self.services = Services.of(config, address)
        self.listening = ""
        self._config = config
        self._grace_s = grace_s
        self._server: _Server | None = None
        self._stopping = False

    async def run(self, started: Callable[[str], None] | None = None) -> None:
        """Serve until ``stop``. started: called with the URL when it listens."""
        services = self.services
        async with services.running():
            await self._first_look()
            sock = self._bind()
            server = self._server = _Server(_settings(App(services)))
            server.ending = self._ending
            server.should_exit = self._stopping
            log.info("[start] coordinator=%s version=%s", services.live.name, __version__)
            log.info("listening on %s%s", self.listening, self._for_whom())
            serving = asyncio.create_task(server.serve([sock]))
            if started:
                started(self.listening)
            try:
                await serving
            finally:
                sock.close()

    async def _first_look(self) -> None:
        """Keys and grid before the first request. A server that is away or silent may come, and
        requests are told so meanwhile; StoreError for one that cannot be used as it is."""
        try:
            async with asyncio.timeout(LOOK_S):
                await self.services.access.refresh()
                await self.services.registry.refresh()
        except TimeoutError:
            log.warning("Redis at %s has not answered yet", self.services.store.shown)
        except StoreError as error:
            if error.code == "UNFIT":
                raise

    def stop(self) -> None:
        """Accept nothing more, let streams come to their end for the grace, then end them."""
        if self._stopping:
            self._end_streams()
        self._stopping = True
        if self._server:
            self._server.should_exit = True

    def _ending(self) -> None:
        count = len(self.services.live)
        if count:
            log.info("stopping: %d answers may go on for %g s", count, self._grace_s)
        asyncio.get_running_loop().call_later(self._grace_s, self._end_streams)

    def _end_streams(self) -> None:
        message = "this coordinator is being stopped"
        self.services.live.end_all(RefusedError("shutting_down", message, "ask again", 1))
        if self._server:
            self._server.last(LAST_S)

    def _bind(self) -> socket.socket:
        host, port = self._where()
        sock = _bind(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.listening = f"http://{shown}:{sock.getsockname()[1]}"
        return sock

    def _where(self) -> tuple[str, int]:
        """Where to listen: as configured, but without any key on this machine only."""
        host, _, port = self._config.coordinator.listen.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not is_loopback(host) and self.services.access.known_open:
            log.warning("no API key exists: listening on 127.0.0.1, not on %s", host)
            host = "127.0.0.1"
        return host, int(port)

    def _for_whom(self) -> str:
        return (
            ", for this machine only: no API key exists" if self.services.access.known_open else ""
        )


def run(config: Config, address: Address, started: Callable[[str], None] | None = None) -> None:
    """Serve in this process until SIGTERM or SIGINT; a second one ends the streams at once."""

    async def main() -> None:
        with contextlib.closing(Notify()) as notify:
            await _serve(Coordinator(config, address), notify, started)

    uvloop.run(main())


async def _serve(
    coordinator: Coordinator, notify: Notify, started: Callable[[str], None] | None
) -> None:
    """systemd is told when it listens, and the reader feeds its watchdog: without that no answer
    would reach a client."""

    def listens(url: str) -> None:
        notify.ready()
        notify.status(url)
        if started:
            started(url)

    def stop() -> None:
        notify.stopping()
        coordinator.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    coordinator.services.live.turned = notify.alive
    await coordinator.run(listens)


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers, and with a word before it begins to stop."""

    ending: Callable[[], None] = staticmethod(lambda: None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending()
        await super().shutdown(sockets)

    def last(self, seconds: float) -> None:
        """Give up, after so long, on clients that do not read their last bytes."""
        asyncio.get_running_loop().call_later(seconds, setattr, self, "force_exit", True)


def _settings(app: App) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_not_ours)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    return uvicorn.Config(
        app,
        loop="none",
        http=Wire,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=BACKLOG,
    )


def _not_ours(record: logging.LogRecord) -> bool:
    """An NDJSON stream that ends in an error is left incomplete on purpose."""
    return "without completing response" not in record.getMessage()


def _bind(host: str, port: int) -> socket.socket:
    sock: socket.socket | None = None
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
    except OSError as error:
        if sock is not None:
            sock.close()
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise UsageError(message, "choose another with --listen ADDRESS:PORT") from error
    return sock
