"""Forward, backward and relevance passes that explainers read."""
