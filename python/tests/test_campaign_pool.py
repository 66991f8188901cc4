"""Campaigns that share workers: the order of their runs, and what is added or stops them."""

import contextlib

import pytest
from campaign_help import sweep
from shortlane.campaign import Campaign, Pool, cluster
from shortlane.errors import InputError, RunError


@pytest.fixture
def starts(monkeypatch):
    """How often workers have been started."""
    found = []
    connect = cluster.connect

    def counted(*arguments, **options):
        found.append(arguments)
        return connect(*arguments, **options)

    monkeypatch.setattr(cluster, "connect", counted)
    return found


def named(title, **more):
    return Campaign.load(sweep(title=title, **more))


def results(folder):
    return {file.name: file.read_bytes() for file in folder.glob("runs/*.parquet")}


def test_campaigns_share_workers_and_have_the_results_that_they_have_alone(tmp_path, starts):
    one, other = named("one"), named("other", schedulers=("las",))
    first = [run.id for run in one.runs() if run.seed <= 2]
    ended = []
    with Pool(jobs=2) as pool:
        begun = pool.add(one.part(tmp_path / "one", only=first))
        pool.add(other.part(tmp_path / "other"))
        for part, outcome in pool.ended():
            ended.append((outcome.out, outcome.runs, outcome.done, outcome.ran, outcome.failed))
            if part is begun:
                assert set(results(tmp_path / "one")) == {f"{run}.parquet" for run in first}
                # The folder is free, and what was there before is not run again.
                pool.add(one.part(tmp_path / "one"))
    assert len(starts) == 1
    mine, its = str(tmp_path / "one"), str(tmp_path / "other")
    assert sorted(ended) == [(mine, 8, 8, 8, []), (mine, 16, 16, 8, []), (its, 8, 8, 8, [])]
    for campaign, name in ((one, "one"), (other, "other")):
        campaign.run(tmp_path / "alone" / name, jobs=1)
        assert results(tmp_path / name) == results(tmp_path / "alone" / name)


def test_what_comes_first_is_run_first(tmp_path):
    folders = [tmp_path / "first", tmp_path / "second"]
    with Pool(jobs=1, ahead=1) as pool:
        for rank, folder in reversed(list(enumerate(folders))):
            pool.add(named(folder.name, seeds="1..8").part(folder, rank=rank))
        assert [part.rank for part, _ in pool.ended()] == [0, 1]
    first, second = (
        [file.stat().st_mtime_ns for file in folder.glob("runs/*.parquet")] for folder in folders
    )
    assert max(first) < min(second)


def test_the_longest_is_next_and_what_is_not_known_before_it(tmp_path):
    with contextlib.ExitStack() as folders:
        parts = [named(f"{n}").part(tmp_path / f"{n}") for n in range(3)]
        for part in parts:
            folders.callback(part.close)
        slow, quick, unknown = parts
        for part, seconds in ((slow, 9.0), (quick, 1.0)):
            part.took(part.waiting.take(0.0, 1), seconds)
        assert sorted(parts, key=lambda one: -one.next_s) == [unknown, slow, quick]
        # Two runs of two seconds: a group of both schedulers.
        assert slow.next_s == pytest.approx(9.0)


def test_nothing_left_takes_no_workers(tmp_path, starts):
    one = named("one", seeds="1")
    one.run(tmp_path, jobs=1)
    starts.clear()
    with Pool() as pool:
        pool.add(one.part(tmp_path))
        [(_, outcome)] = pool.ended()
    assert (outcome.done, outcome.ran) == (4, 0)
    assert not starts


def test_a_folder_is_locked_until_its_runs_have_ended_or_the_pool_is_left(tmp_path):
    one = named("one")
    with Pool() as pool:
        pool.add(one.part(tmp_path))
        with pytest.raises(InputError, match="another campaign is running into it"):
            one.part(tmp_path)
    one.part(tmp_path).close()


def test_what_cannot_go_on_says_how_far_all_campaigns_are(tmp_path):
    one, other = named("one", seeds="1"), named("other", seeds="1")
    one.run(tmp_path / "one", jobs=1)
    other.run(tmp_path / "other", jobs=1, only=[])
    (tmp_path / "other" / "runs").write_text("in the way")
    with Pool(jobs=1) as pool:
        pool.add(one.part(tmp_path / "one"))
        pool.add(other.part(tmp_path / "other"))
        with pytest.raises(RunError, match="4 of 8 runs are done, and the same command continues"):
            list(pool.ended())
