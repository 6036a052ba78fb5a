"""Bytes to values and back, exactly as `format-spec/vault-format.md` says: no I/O, no clock."""
