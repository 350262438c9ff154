"""The board as markdown and LaTeX, each page a function that returns its text.

`overview.overview` is the first page, `table_page.table_page` the page of one table, `latex.latex`
its tabulars; `formatting` has what they share: numbers, escaped names, grids.
"""
