"""`python -m regard` is the command `regard`."""

from .commands import main

if __name__ == "__main__":
    main()
