"""Readers of published data sets, one per file."""
