"""Java programs as a user would start them: Kafka's console tools, its performance tools, our oracles."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support import maven

QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TIMEOUT_S = 240.0


class JavaFailedError(Exception):
    """A Java program ended with an error; the message holds its output."""


def run_java(
    main_class: str,
    arguments: Sequence[str | Path],
    *,
    bundle: str = "kafka-4.3",
    text_in: str = "",
    timeout_s: float = TIMEOUT_S,
    heap: str = "256m",
    short_lived: bool = True,
) -> str:
    """Run a class of the bundle and return its standard output. Raises JavaFailedError unless it exits with 0.

    `short_lived` starts the JVM quickly at the price of its top speed. Skips the test where Java is missing (see
    maven.classpath).
    """
    command = ["java", f"-Xmx{heap}", *(SHORT_LIVED if short_lived else ()), QUIET]
    command += ["-cp", maven.classpath(bundle), main_class, *map(str, arguments)]
    done = subprocess.run(command, input=text_in, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        output = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        raise JavaFailedError(f"{main_class} ended with {done.returncode}:\n{output}")
    return done.stdout
