"""The conversation: when to ask, what to ask, how an answer is learned."""
