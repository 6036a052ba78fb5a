"""The demo: one diary, two devices, and a server that cannot read it."""
