"""Whether the machines of the fleet are fit for what runs on them, asked over SSH."""
