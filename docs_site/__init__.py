"""Pages of the site that are written when it is built, so that they cannot be out of date.

`hooks.py` is what MkDocs loads; every other module returns the Markdown of one page. None of it is
part of the package that is installed.
"""
