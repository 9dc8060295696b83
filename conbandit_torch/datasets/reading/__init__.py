"""What readers share: files, tables, and the faults that are found in them."""
