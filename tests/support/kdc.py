"""A Kerberos server (MIT krb5) with a service and users, in a directory of its own. Skips where there is none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.support.processes import Process, wait_until

REALM: Final = "KAVKA.TEST"
SERVICE: Final = f"kafka/localhost@{REALM}"
_SYSTEM: Final = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
_CLIENTS_CONF: Final = """[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""
_SERVERS_CONF: Final = """[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/database
  key_stash_file = {directory}/stash
 }}
"""


class Kdc:
    """`keytab(principal)` has that principal's key; `env` is what processes need that use the realm."""

    def __init__(self, directory: Path, *principals: str) -> None:
        """With SERVICE and these principals."""
        self.directory = directory
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        fields = {"realm": REALM, "port": port, "directory": directory}
        (directory / "krb5.conf").write_text(_CLIENTS_CONF.format(**fields))
        (directory / "kdc.conf").write_text(_SERVERS_CONF.format(**fields))
        self.env = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{directory}/tickets",
            "KRB5RCACHEDIR": str(directory),
        }
        self._run("kdb5_util", "create", "-s", "-P", "of the database", "-r", REALM)
        for principal in (SERVICE, *principals):
            self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {self.keytab(principal)} {principal}")
        command = [_program("krb5kdc"), "-n", "-r", REALM]
        self._process = Process(command, directory / "kdc.log", env=self.env)
        wait_until(lambda: _answers(port), 60, "the KDC does not answer")

    def keytab(self, principal: str) -> Path:
        return self.directory / f"{principal.replace('/', '-').partition('@')[0]}.keytab"

    def log_in(self, principal: str) -> None:
        """Have processes with `env` act as that principal."""
        self._run("kinit", "-k", "-t", str(self.keytab(principal)), principal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()

    def _run(self, program: str, *arguments: str) -> None:
        command = [_program(program), *arguments]
        done = subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stderr}"


def _program(name: str) -> str:
    found = shutil.which(name, path=_SYSTEM)
    if found is None:
        pytest.skip(f"MIT Kerberos is not installed: no {name}")
    return found


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
