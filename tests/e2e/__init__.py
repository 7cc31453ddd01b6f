"""Whole systems: real processes, a real server, engines that fail on demand, clients that watch."""
