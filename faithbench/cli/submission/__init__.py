"""Commands for submissions: to start, measure, try, check and show them."""
