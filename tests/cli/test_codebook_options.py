"""Options of `sfumato solve` that only the codebook knows."""


def test_closest_is_passed_on(sfumato, tmp_path):
    ended = sfumato(
        "solve",
        "four-corners",
        "--max-loss",
        173,
        "--closest",
        "--max-posterior",
        0.5,
        "--out",
        tmp_path / "run",
    )
    assert ended.code == 2
    assert "knows no worst-case limits" in ended.err
    assert not (tmp_path / "run").exists()


def test_options_of_the_codebook_are_refused_for_others(sfumato, tmp_path):
    for option in (("--closest",), ("--resampled-share", "0.2")):
        ended = sfumato(
            "solve",
            "four-corners",
            "--max-loss",
            173,
            "--solver",
            "exact",
            *option,
            "--out",
            tmp_path / "run",
        )
        assert ended.code == 2
        assert f"{option[0]} is an option of the codebook; got --solver exact" in ended.err


def test_a_refused_run_leaves_the_checkpoint_of_the_last_one(sfumato, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.npz").write_bytes(b"of an earlier run")
    for refused in (("--max-posterior", 0.1), ("--closest", "--max-posterior", 0.5)):
        ended = sfumato(
            "solve", "four-corners", "--max-loss", 173, *refused, "--out", tmp_path / "run"
        )
        assert ended.code == 2
        assert (tmp_path / "run" / "checkpoint.npz").read_bytes() == b"of an earlier run"
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint.npz"]
