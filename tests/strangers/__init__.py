"""What a stranger can write with public names alone, each in at most 80 lines."""
