"""The object that apps hold, and what wires the other parts together.

Imports point downwards here too: `vault` and its parts, `held`, then the packages `copies`, `compaction`, `answers` and
`keys`, `writes` and `remote`, `checkpoint`, `folder`, `extras`.
"""
