"""`python -m faithbench.cli`, which is the command `faithbench`."""

from faithbench.cli import main

if __name__ == "__main__":
    main()
