"""What an explainer is, and all of them."""
