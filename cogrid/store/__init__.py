"""The only code that knows Redis: keys, transitions (one Lua script a file), readings."""
