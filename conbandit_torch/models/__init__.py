"""What is learned: ridge regressions, the levels of a score, representations, histories."""
