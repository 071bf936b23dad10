"""What a test opens and forgets costs the tests after it nothing."""

import gc
from pathlib import Path

from tests.support.log_managers import FailingFiles
from tests.support.partition_logs import append, open_files_in, open_log


def test_logs_that_a_test_forgets_leave_no_descriptor_open(tmp_path: Path) -> None:
    append(open_log(tmp_path / "forgotten"), b"v")
    append(open_log(tmp_path / "refused", files=FailingFiles()), b"v")
    kept = open_log(tmp_path / "kept")
    append(kept, b"v")
    gc.collect()

    assert {Path(each).parent.name for each in open_files_in(tmp_path)} == {"kept"}
    append(kept, b"w")
    kept.close()
