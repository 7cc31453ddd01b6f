"""Frees what is stuck: one pass that can be repeated, and the loop around it."""
