"""The command line, the only code that knows a terminal: a noun or verb a file."""
