"""Reference cards: what is known of an explainer, metric, objective or model, read off itself.

`card` says what a card is and prints it; the other modules read one off each kind of thing. The
commands `faithbench show ...` print them, and the pages of the documentation's site are made of
them.
"""
