"""Every policy, one protocol: the leaderboard."""
