"""What makes the documentation's generated pages: `mkdocs build` calls `hook.py`."""
