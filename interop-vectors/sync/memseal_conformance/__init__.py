"""Tests any memseal server over HTTP against format-spec/sync-protocol.md; shares no code with our client or server."""
