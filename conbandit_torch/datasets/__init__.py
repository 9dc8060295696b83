"""Readers of real data, one file a source format, into one common form, and its preparation."""
