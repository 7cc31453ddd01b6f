"""The only code that knows SSH: builds commands, runs them, parses what they print."""
