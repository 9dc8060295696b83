"""What came out: read, aggregated, compared, drawn."""
