"""Base bandits: one algorithm a file."""
