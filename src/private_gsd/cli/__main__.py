"""``python -m private_gsd.cli`` is the command line."""

from private_gsd.cli import main

main()
