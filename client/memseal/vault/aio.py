"""The same vault for asyncio apps: each verb runs in a thread, so that the event loop never waits for disk or network."""
