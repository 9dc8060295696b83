"""Search for good parameters."""
