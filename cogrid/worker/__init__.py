"""A worker beside its engine: takes the name, probes, claims, runs, renews, drains."""
