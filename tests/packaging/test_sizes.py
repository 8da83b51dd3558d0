"""The size of a build is what its files take, links not counted, and a budget is a budget."""

from __future__ import annotations

import pytest

import sizes


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setitem(sizes.BUDGETS, "cpu", 3_000_000)
    folder = tmp_path / "foretoken"
    (folder / "_internal" / "torch" / "lib").mkdir(parents=True)
    (folder / "foretoken").write_bytes(b"x" * 500_000)
    (folder / "_internal" / "torch" / "lib" / "libtorch.so").write_bytes(b"x" * 2_000_000)
    (folder / "_internal" / "libtorch.so").symlink_to("torch/lib/libtorch.so")
    return folder


def test_the_report_tells_packages_and_files(program):
    text, within = sizes.report(program, "cpu")
    assert within
    assert "2 MB in 2 files; the budget is 3 MB" in text  # 2.5 MB, to the even
    assert "| 2.0 | torch |" in text
    assert "| 0.5 | (single files) |" in text
    assert "| 2.0 | _internal/torch/lib/libtorch.so |" in text


def test_past_the_budget_the_exit_code_says_so(program, capsys):
    assert sizes.main([str(program), "cpu"]) == 0
    (program / "more").write_bytes(b"x" * 600_000)
    assert sizes.main([str(program), "cpu"]) == 1
    assert "larger than its budget" in capsys.readouterr().err
