"""Commands that train: models, the classifiers of FRESH, and students."""
