"""What clients cost, producing and consuming, against one Kavka broker started for it: `make bench-client`.

    python -m benchmarks.clients [--records 20000] [--runs 1] [...]

What is given goes to `benchmarks.client_produce` and `benchmarks.client_consume`, each of which has more of its own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.contestants import Kavka

MODULES: Final = ("benchmarks.client_produce", "benchmarks.client_consume")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kavka-clients-") as folder:
        settings = {"auto.create.topics.enable": "true"}
        with Kavka(Path(folder), settings).running() as server:
            for module in MODULES:
                command = [sys.executable, "-m", module, "--bootstrap", server.bootstrap, *sys.argv[1:]]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
