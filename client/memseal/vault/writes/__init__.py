"""From what an app wants kept or changed to operations."""
