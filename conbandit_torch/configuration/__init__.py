"""From YAML to an experiment and its parts."""
