"""An engine that fails on demand: an HTTP server speaking both dialects, with switches.

By hand: ``python -m cogrid.engine.fault --port 0 --models gemma3:1b,bge-m3@embedding``; its first
line is the URL. ``POST /fault {"mode": "stall", "after": 5}`` sets a switch, ``GET /fault`` shows
them with the counters, ``DELETE /fault`` clears them, ``GET /fault/requests`` tells what became of
each request. In a test: ``async with FaultEngine() as engine``.
"""

from cogrid.engine.fault.model import FaultModel
from cogrid.engine.fault.record import Outcome, Record
from cogrid.engine.fault.server import FaultEngine
from cogrid.engine.fault.switch import Mode, Switch

__all__ = ["FaultEngine", "FaultModel", "Mode", "Outcome", "Record", "Switch"]
