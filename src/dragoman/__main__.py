"""`python -m dragoman`. Processes that prepare data import this file, too, but no command."""

if __name__ == "__main__":
    from dragoman.cli import main

    main()
