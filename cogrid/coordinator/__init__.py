"""HTTP in, store call, HTTP out: both dialects, and the one reader that follows all answers."""
