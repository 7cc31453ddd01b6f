"""Figures beside a direct call: how long a chat takes, how many the grid carries."""
