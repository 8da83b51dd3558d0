"""G01, G09: strict JSON that comes back equal, and reasons for every file that is none."""

import json

import msgspec
import numpy
import pytest
from recorded import costed_record, hostile_record, record_of, run_record, started

from app.reports import json_report, read_record, summarise, write_report
from app.reports.schema import record_schema
from app.run.problems import Problem


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


@pytest.mark.parametrize("make", [run_record, hostile_record, record_of, costed_record])
def test_a_record_comes_back_equal(make, tmp_path):
    record = make()
    (path,) = write_report(record, tmp_path / "run.json", overwrite=False)
    assert read_record(path) == record
    plain = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert plain["schema"] == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), numpy.float64(1.0)])
def test_numbers_that_are_not_plain_and_finite_are_refused(value, tmp_path):
    record = run_record()
    record.lanes[0].repetitions[0].time_to_first_token = value
    with pytest.raises((ValueError, TypeError)):
        write_report(record, tmp_path / "run.json", overwrite=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b"[" * 100_000, "not a report"),
        (b'{"schema": 1', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"schema": NaN}', "not JSON"),
        (b"[]", "not a report"),
        (b"{}", "not a report"),
        (b'{"schema": "1"}', "not a report"),
        (b'{"schema": 1}', "not a report"),
        (b'{"schema": 2}', "newer"),
        (b'{"schema": 0}', "the version that wrote it"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_a_reason(data, word, tmp_path):
    path = tmp_path / "foreign.json"
    path.write_bytes(data)
    with pytest.raises(Problem, match=word):
        read_record(path)


def test_a_report_with_a_wrong_type_or_a_foreign_field_is_refused(tmp_path):
    path = tmp_path / "run.json"
    write_report(run_record(), path, overwrite=False)
    sound = path.read_text(encoding="utf-8")
    for wrong in (
        sound.replace('"prompt_ids": [\n', '"prompt_ids": ["a",\n', 1),
        sound.replace('"run":', '"more": 1, "run":', 1),
    ):
        assert wrong != sound
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(Problem, match="not a report"):
            read_record(path)


def test_a_huge_file_a_folder_and_a_missing_file_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "huge.json"
    path.write_bytes(b"{}")
    monkeypatch.setattr(json_report, "LARGEST", 1)
    for wrong in (path, tmp_path, tmp_path / "none.json"):
        with pytest.raises(Problem):
            read_record(wrong)


def test_every_field_of_the_layout_is_described():
    schema = record_schema()
    silent = [
        f"{name}.{field}"
        for name, definition in schema["$defs"].items()
        for field, value in definition["properties"].items()
        if not value.get("description")
    ]
    assert silent == []
    assert all(definition["description"] for definition in schema["$defs"].values())


def test_the_summary_has_the_promised_keys_and_values():
    told = json.loads(summarise(run_record()).json(), parse_constant=refuse)
    assert told["text"] == "<1><2><3><4><5>"
    assert told["token_ids"] == told["speculative"]["token_ids"] == [1, 2, 3, 4, 5]
    assert told["decode_speedup"] == 2.0
    assert told["decode_speedup_range"] == [2.0, 2.0]
    assert told["request_speedup"] == 4.5 / 2.5
    assert told["acceptance_rate"] == 2 / 4
    assert told["conditional_acceptance"] == 2 / 3
    assert told["tokens_per_loop"] == 2.0
    assert told["counts"] == {
        "drafted": 4, "accepted": 2, "rejected": 1, "ignored": 1, "discarded": 0, "corrected": 1,
        "bonus": 1, "plain": 0, "first": 1, "committed": 5, "rounds": 2,
    }  # fmt: skip
    seconds = {"time_to_first_token_s": 0.5, "decode_s": 2.0, "total_s": 2.5}
    assert told["speculative"].items() >= {"decode_tokens_per_second": 2.0, **seconds}.items()
    assert told["baseline"]["decode_tokens_per_second"] == 1.0
    assert (told["same_text"], told["lossless"]) == (True, True)


def test_the_summary_of_nothing_is_null_not_zero():
    told = json.loads(summarise(record_of()).json(), parse_constant=refuse)
    for name in ("decode_speedup", "decode_speedup_range", "request_speedup", "acceptance_rate",
                 "conditional_acceptance", "tokens_per_loop", "speculative", "baseline",
                 "same_text"):  # fmt: skip
        assert told[name] is None
    assert told["counts"]["drafted"] == 0


def test_the_summary_says_whether_it_pays_and_why():
    worth = json.loads(summarise(costed_record()).json(), parse_constant=refuse)["worth"]
    assert (
        worth["verdict"]
        == "pays: 1.71× (one pair, no spread), predicted best draft length 2, not tried"
    )
    assert worth["costs"]["seconds"]["5"] == 0.9
    assert worth["accounted_speedup"] == pytest.approx(12 / 7)
    assert worth["unexplained"] == pytest.approx(0.0)
    assert worth["best_draft_length"] == 2
    assert [flag.split(":")[0] for flag in worth["flags"]] == ["One pair, no spread"]
    nothing = json.loads(summarise(record_of()).json(), parse_constant=refuse)["worth"]
    assert (nothing["costs"], nothing["predicted_speedup"], nothing["flags"]) == (None, None, [])


def test_settings_in_a_report_are_enough_to_ask_again(tmp_path):
    record = run_record(draft_length=3, stop_strings=("a",), method_options={"shortest": 3})
    (path,) = write_report(record, tmp_path / "run.json", overwrite=False)
    again = read_record(path).settings
    assert again == started(**msgspec.structs.asdict(record.settings)).settings
