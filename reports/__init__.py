"""Runs → pages and terminal tables. Reads records, never measures; the only place that formats numbers for people."""
