"""What happens around the loop: logging, files, progress."""
