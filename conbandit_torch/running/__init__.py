"""Running an experiment's jobs, and everything that is written while they run."""
