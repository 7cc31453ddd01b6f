"""The event loop that costs least here."""

from __future__ import annotations

import asyncio

try:
    import uvloop
except ImportError:  # not built for this platform
    new_event_loop = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop
