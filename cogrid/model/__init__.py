"""Frozen values: what a task, a worker, a snapshot, a finding and a chat are. No I/O, no clock."""
