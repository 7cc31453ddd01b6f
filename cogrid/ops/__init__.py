"""An operator's verb a file, free of the terminal: reads or changes the grid, returns a value."""
