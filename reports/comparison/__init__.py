"""Runs held against a base run → what their page and their Markdown say."""
