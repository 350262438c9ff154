"""The files of a model: where they lie, their digests, and what is wrong with damaged ones."""
