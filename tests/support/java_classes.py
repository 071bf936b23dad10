"""Our Java programs, compiled once for each set of jars into `.cache/classes/`: starting one then needs no compiler."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support import maven
from tests.support.java import SHORT_LIVED, JavaFailedError

SOURCES = maven.REPOSITORY / "tests" / "java"
CLASSES = maven.REPOSITORY / ".cache" / "classes"
COMPILE_TIMEOUT_S = 200.0


def compiled(name: str, bundle: str) -> str:
    """The class path that runs tests/java/NAME.java with the bundle's jars. Skips as maven.classpath does."""
    jars = maven.classpath(bundle)
    source = SOURCES / f"{name}.java"
    fingerprint = hashlib.sha256(source.read_bytes() + (maven.JARS / bundle / "pom.xml").read_bytes()).hexdigest()[:12]
    target = CLASSES / f"{name}-{bundle}-{fingerprint}"
    if not target.is_dir():
        _compile(source, jars, target)
    return f"{target}{os.pathsep}{jars}"


def _compile(source: Path, jars: str, target: Path) -> None:
    """Compile beside the target and rename: two test processes may do it at once."""
    CLASSES.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=CLASSES))
    # The compiler as a module is in headless runtimes, too, the javac program is not.
    compiler = ["java", *SHORT_LIVED, "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    command = [*compiler, "-nowarn", "-d", str(scratch), "-cp", jars]
    done = subprocess.run(
        [*command, str(source)], capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        shutil.rmtree(scratch)
        raise JavaFailedError(f"{source.name} does not compile:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    try:
        scratch.rename(target)
    except OSError:
        shutil.rmtree(scratch)
