"""Pure decisions: values in, a value out. No clock, no I/O, no logging; one question a file."""
