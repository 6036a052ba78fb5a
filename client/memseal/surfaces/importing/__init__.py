"""Read files of other programs as memories to import.

Every reader yields the keywords of `Vault.remember`, and what became of the memory where that is known. `origin` says
where an item came from and stays the same when the file is read again, so an import that was broken off is safe to
repeat. What cannot be read is an `ImportRowError`: raised, or given to `on_error` and skipped. Fields that a reader
does not know are left out and counted in `unknown_fields`.
"""
