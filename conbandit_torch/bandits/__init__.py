"""Base bandits: one algorithm per file."""
