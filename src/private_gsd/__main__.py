"""``python -m private_gsd`` is the command line."""

from private_gsd.cli import main

main()
