"""The program: `gradcmp` and `python -m gradcmp` run the one in the package."""

import os
import sys

from pathlib import Path


def main() -> None:
    program = Path(__file__).resolve().parent / "_native" / "bin" / "gradcmp"
    try:
        os.execv(program, ["gradcmp", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"gradcmp: {program}: {error.strerror}")


if __name__ == "__main__":
    main()
