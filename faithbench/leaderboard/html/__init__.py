"""The board as one closed HTML file.

`page.render_page` makes it of a board; `document.document` puts any page together from the files
in `assets/`, with a policy that forbids all requests; `chart_library` is the script for charts.
"""
