"""compute-sanitizer over every kernel on small problems: `python -m harness.sanitize`."""
