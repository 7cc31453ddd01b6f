"""The only code that speaks HTTP to an inference engine: list, probe, stream."""
