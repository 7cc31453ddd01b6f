"""Gets cogrid onto a host that has Python and nothing else, over nothing but SSH.

``read_python`` asks what Python the host has, ``gather`` collects the wheels for it on this side,
``stage`` installs them there beside what runs, ``switch`` makes them the ones that run.
"""
