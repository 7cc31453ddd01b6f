"""The command line: a noun or verb a file; parse, call, render. The only code that knows a terminal."""
