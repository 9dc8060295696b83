"""The benchmark of bookkeeping, in short: whether its cost grows shows only with many jobs."""

from experiments import bookkeeping


def test_bookkeeping_of_a_few_jobs_is_measured(tmp_path):
    took = bookkeeping.measure(tmp_path / "folder", 12)
    assert set(took) == {"bookkeeping", "files of the jobs", "again"}
    assert all(0 < seconds < 60 for seconds in took.values())
    assert not (tmp_path / "folder").exists()
