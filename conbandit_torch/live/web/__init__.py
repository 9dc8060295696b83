"""The same conversation in a browser, and as REST."""
