"""Logging of the daemons: one line an event on stderr, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Text(logging.Formatter):
    """``02:25:47 [register] worker_id=esxi …``; a level is named only where it is a warning or
    worse. Control characters from engines and hosts cannot forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        level = f"{record.levelname} " if record.levelno >= logging.WARNING else ""
        said = "".join(c if c.isprintable() else " " for c in record.getMessage())
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{at} {level}{said}{trace}"


def setup(log_format: str = "text", level: str = "info") -> None:
    """Send everything that cogrid logs to stderr. log_format: text or json."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "asyncio", "uvicorn.access", "paramiko"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
