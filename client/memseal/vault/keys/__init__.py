"""Keys made and renewed, devices let in and removed: each change is a keyring version."""
