"""Policies for people: names, late rewards, and a store that forgets nothing it has acknowledged."""
