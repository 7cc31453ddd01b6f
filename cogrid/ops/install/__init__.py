"""A host is made a worker, a coordinator or a reaper, and freed of it.

``look`` runs on the host and reads; ``facts`` are what it says, as values; ``plan`` decides and
touches nothing; ``undoing`` keeps on the host how each step is taken back, and has that done
whatever happens to this side; ``apply`` has the steps done and waits for the proof.
"""
