"""systemd's units of cogrid: from settings to a unit and back, and what systemd says of one.

Everything here is a function of its arguments; whoever calls brings the texts to a host and back.

``render.render`` makes the unit and its environment file from ``settings.UnitSettings``, and
``read.read`` makes the settings from them again. ``seal.origin`` tells whether a unit is as it was
installed. ``state.parse_state`` reads what ``systemctl show`` says, and ``explain.explain`` says
what that means and what to do.
"""
