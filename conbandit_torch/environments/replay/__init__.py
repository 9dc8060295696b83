"""Playing a log again: the protocol, the log, and logs that are generated."""
