"""The sync store: for the command line, the reaper and a worker's renewals. Built on redis-py."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from cogrid.store.address import CONNECT_S, Address
from cogrid.store.gaps import Gaps, Part, lack_of, lacking
from cogrid.store.keys import Keys
from cogrid.store.reading import Reading
from cogrid.store.refusal import StoreError, refusal, silence
from cogrid.store.script import Call, Scripts, script, text

T = TypeVar("T")
REPLY_S = 5.0


class Store:
    """One connection to the server. Not for several threads at once: each opens its own.

    Every transition may be sent twice, so a lost connection is tried once more at once; whoever
    calls decides about trying later. StoreError says what is wrong. gaps: readings go on where our
    user may not read, and what is hidden is gathered there; without, a refusal is an error.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys: Keys,
        shown: str,
        scripts: Scripts = script,
        *,
        user: str = "default",
        gaps: Gaps | None = None,
    ) -> None:
        self.keys = keys
        self.shown = shown
        self.gaps = gaps
        self._user = user
        self._scripts = scripts
        self._client = client
        # Replies as the server sent them: the same for both stores, whatever the client's version.
        self._client.response_callbacks.clear()

    @classmethod
    def connect(
        cls, address: Address, prefix: str = "", reply_s: float = REPLY_S, *, look: bool = False
    ) -> Store:
        """A store that connects when it is first used. look: for somebody who only looks, and makes
        do with what our user may read."""
        common: dict[str, Any] = {
            "db": address.db,
            "username": address.username,
            "password": address.password,
            "protocol": 2,
            "socket_timeout": reply_s,
            "socket_connect_timeout": min(CONNECT_S, reply_s),
            "retry": Retry(NoBackoff(), 1),
        }
        if address.path:
            client = redis.Redis(unix_socket_path=address.path, **common)
        else:
            client = redis.Redis(
                host=address.host,
                port=address.port,
                ssl=address.tls,
                ssl_ca_certs=address.ca_file,
                **common,
            )
        user = address.username or "default"
        gaps = Gaps(user, prefix, address.shown) if look else None
        return cls(client, Keys(prefix), address.shown, user=user, gaps=gaps)

    def do(self, call: Call[T]) -> T:
        """Run one transition."""
        return self.do_all((call,))[0]

    def do_all(self, calls: Sequence[Call[T]]) -> list[T]:
        """Run transitions in one round trip; the first refusal is raised after all were sent."""
        return [_certain(outcome) for outcome in self.try_all(calls)]

    def try_all(self, calls: Sequence[Call[T]]) -> list[T | StoreError]:
        """Run transitions in one round trip; each has its outcome or its refusal. Silence of the
        server is still raised."""
        replies = self._send([self._evalsha(call) for call in calls])
        missing = [i for i, reply in enumerate(replies) if is_no_script(reply)]
        if missing:
            names = sorted({calls[i].name for i in missing})
            self._send([("SCRIPT", "LOAD", self._scripts(name).source) for name in names])
            again = self._send([self._evalsha(calls[i]) for i in missing])
            for i, reply in zip(missing, again, strict=True):
                replies[i] = reply
        return [
            self._refused(call, reply)
            if isinstance(reply, redis.RedisError)
            else call.decode(reply)
            for call, reply in zip(calls, replies, strict=True)
        ]

    def read(self, reading: Reading[T]) -> T:
        """Drive a reading to its value."""
        refused: list[tuple[Any, tuple[Any, ...]]] = []
        try:
            commands = next(reading)
            while True:
                replies = self._send(commands)
                if self.gaps:
                    replies = self.gaps.filled(commands, replies)
                refused += (
                    (reply, command)
                    for reply, command in zip(replies, commands, strict=True)
                    if isinstance(reply, Exception)
                )
                commands = reading.send(replies)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except redis.exceptions.NoPermissionError as error:
            command = next(command for reply, command in refused if reply is error)
            raise self._denied(command, error) from error
        except redis.ResponseError as error:
            raise self._error(error) from error

    @property
    def unread(self) -> frozenset[Part]:
        """What was hidden from our user in the readings so far."""
        return self.gaps.unread if self.gaps else frozenset()

    def demand(self, parts: Iterable[Part]) -> None:
        """HiddenError where one of these was hidden: without it there is nothing to tell."""
        if self.gaps:
            self.gaps.demand(parts)

    def local_address(self) -> str:
        """The IP address of this machine from which the server is reached; "" where the server is
        gone, and over a unix socket."""
        pool = self._client.connection_pool
        try:
            connection = pool.get_connection()
        except (redis.RedisError, OSError):
            return ""
        try:
            # redis-py has no public way to its socket.
            used: socket.socket | None = getattr(connection, "_sock", None)
            inet = used is not None and used.family in (socket.AF_INET, socket.AF_INET6)
            return str(used.getsockname()[0]) if used and inet else ""
        except OSError:
            return ""
        finally:
            pool.release(connection)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _evalsha(self, call: Call[Any]) -> tuple[Any, ...]:
        return ("EVALSHA", self._scripts(call.name).sha, 1, call.key, *call.args)

    def _send(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        try:
            return pipe.execute(raise_on_error=False)
        except redis.AuthenticationError as error:
            # redis-py has one exception for both, and takes the code off.
            code = "WRONGPASS" if "invalid" in str(error) else "NOAUTH"
            raise refusal(self.shown, f"{code} {error}") from error
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise silence(self.shown, error) from error
        except redis.ResponseError as error:
            raise refusal(self.shown, str(error)) from error

    def _refused(self, call: Call[Any], error: redis.RedisError) -> StoreError:
        if isinstance(error, redis.exceptions.NoPermissionError):
            return self._denied(("EVALSHA", call.key), error)
        return self._error(error)

    def _denied(
        self, command: Sequence[Any], error: redis.exceptions.NoPermissionError
    ) -> StoreError:
        """The refusal with the key that it is about, which the server does not name."""
        gap = lacking(self._user, self.keys.prefix, lack_of(command, self.keys.prefix, str(error)))
        message = f"Redis at {self.shown} does not allow this to our user: {gap.what}"
        return StoreError(message, gap.mend, code="NOPERM", passing=False)

    def _error(self, error: redis.RedisError) -> StoreError:
        code = _CODES.get(type(error), "")
        return refusal(self.shown, f"{code} {error}".strip())


# redis-py takes the code off the text where it has an exception of its own.
_CODES: dict[type[redis.RedisError], str] = {
    redis.BusyLoadingError: "LOADING",
    redis.ReadOnlyError: "READONLY",
    redis.exceptions.NoPermissionError: "NOPERM",
    redis.exceptions.OutOfMemoryError: "OOM",
    redis.exceptions.NoScriptError: "NOSCRIPT",
    redis.exceptions.MovedError: "MOVED",
    redis.exceptions.ClusterDownError: "CLUSTERDOWN",
    redis.exceptions.TryAgainError: "TRYAGAIN",
    redis.exceptions.MasterDownError: "MASTERDOWN",
}


def _certain(outcome: T | StoreError) -> T:
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome


def is_no_script(reply: object) -> bool:
    """The server does not know this script (restart, SCRIPT FLUSH)."""
    return isinstance(reply, Exception) and (
        isinstance(reply, redis.exceptions.NoScriptError) or text(reply).startswith("NOSCRIPT")
    )
