"""An open vault and a remote: one round, or in step from now on."""
