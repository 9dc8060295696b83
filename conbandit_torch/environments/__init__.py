"""Environments: who is here, what they answer, what they reward. The truth stays on this side."""
