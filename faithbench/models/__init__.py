"""The network: weights, tokens, the one engine, and what the model predicts."""
