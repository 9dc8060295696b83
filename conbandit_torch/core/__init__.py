"""What everything else rests on: contexts, questions, rounds, the catalogue, randomness, processes."""
