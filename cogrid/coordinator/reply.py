"""A value as the JSON answer of an ordinary route."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response


def reply(value: Any, status: int = 200) -> Response:
    """The answer."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")
