"""Bundles: small, sealed, without true locations; a kept report; bad places."""

import json
import shutil
from dataclasses import dataclass, replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.read import write_split
from sfumato.data.recipe import Recipe
from sfumato.deploy.bundle import _expected, export, load_bundle
from sfumato.deploy.release import budget_of
from sfumato.errors import FileError, MechanismError
from sfumato.measure.judge import judge
from sfumato.measure.outlook import Outlook
from sfumato.study.folder import keep_reports, load_run, save_run
from sfumato.study.record import Keeping
from tests.deploy.tables import DATA
from tests.web.conftest import KINDS
from tests.web.device import WEB, in_node

FILES = ("manifest.json", "mechanism.onnx", "vectors.json")
_LOADS = """
const outcome = [];
for (const { name, at, bit } of given.changes) {
  const read = async (file) => {
    const bytes = new Uint8Array(readFileSync(given.folder + "/" + file));
    if (file === name) bytes[at] ^= bit;
    return bytes;
  };
  outcome.push(await load(read).then(() => "loaded", (error) => (error instanceof Error ? error.message : "odd")));
}
console.log(JSON.stringify(outcome));
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_is_below_300_kilobytes(bundles, kind):
    assert sum((bundles / kind / name).stat().st_size for name in FILES) < 300_000
    load_bundle(bundles / kind)


def _changes(folder, count):
    random = np.random.default_rng(3)
    sizes = {name: (folder / name).stat().st_size for name in FILES}
    names = [FILES[place % 3] for place in range(count)]
    return [
        {"name": name, "at": int(random.integers(sizes[name])), "bit": int(2 ** random.integers(8))}
        for name in names
    ]


def test_a_bundle_changed_in_one_byte_is_refused_by_python(bundles, tmp_path):
    shutil.copytree(bundles / "net", tmp_path / "bundle")
    for change in _changes(tmp_path / "bundle", 600):
        path = tmp_path / "bundle" / change["name"]
        whole = path.read_bytes()
        path.write_bytes(
            whole[: change["at"]]
            + bytes([whole[change["at"]] ^ change["bit"]])
            + whole[change["at"] + 1 :]
        )
        with pytest.raises(FileError):
            load_bundle(tmp_path / "bundle")
        path.write_bytes(whole)
    load_bundle(tmp_path / "bundle")


def test_a_bundle_changed_in_one_byte_is_refused_by_the_module(bundles):
    folder = bundles / "net"
    changes = [{"name": "none", "at": 0, "bit": 1}, *_changes(folder, 600)]
    unchanged, *outcomes = in_node(_LOADS, {"folder": str(folder), "changes": changes})
    assert unchanged == "loaded"
    assert (
        "loaded" not in outcomes
        and "odd" not in outcomes
        and not any("48.8" in outcome for outcome in outcomes)
    )


def test_a_mechanism_that_lists_true_locations_is_refused_unless_told(runs, tmp_path):
    with pytest.raises(FileError, match=r"true locations.*none, such as a codebook") as refused:
        export(runs / "channel", tmp_path / "dist")
    assert (
        refused.value.hint is not None
        and "reveal_truths" in refused.value.hint
        and not (tmp_path / "dist").exists()
    )
    assert export(runs / "channel", tmp_path / "dist", reveal_truths=True)["holds_true_locations"]


def test_a_bundle_too_large_for_a_device_is_refused_before_anything_is_written(
    runs, tmp_path, monkeypatch
):
    monkeypatch.setattr("sfumato.deploy.bundle.MOST_BYTES", 10_000)
    with pytest.raises(
        FileError, match=r"would be \d+ bytes .* at most 10000; nothing was written"
    ):
        export(runs / "net", tmp_path / "dist")
    assert not list(tmp_path.iterdir())


def test_no_bundle_holds_a_true_location(bundles):
    """No pair of the data's coordinates, in metres or degrees, stands in any file as doubles or as
    text."""
    assert DATA.train.plane is not None
    for kind in ("laplace", "coin", "net"):
        files = {name: (bundles / kind / name).read_bytes() for name in FILES}
        for point in DATA.train.truth[::40]:
            assert point.tobytes() not in files["mechanism.onnx"]
            latitude, _ = DATA.train.plane.to_degrees(point)
            for text in (f"{point[0]:.3f}", f"{latitude[0]:.6f}"):
                assert text.encode() not in files["manifest.json"] + files["vectors.json"]
        truths = np.array(
            [vector["truth"] for vector in json.loads(files["vectors.json"])["vectors"]]
        )
        gaps = np.abs(truths[:, None, :] - DATA.train.truth[None, :, :]).max(axis=2)
        assert gaps.min() > 1e-3


def test_the_manifest_says_what_was_measured_and_proved(tmp_path):
    some = DATA.train.take(np.arange(0, len(DATA.train), 60))
    write_split(sf.Split(some), tmp_path / "some.csv")
    recipe = Recipe(str(tmp_path / "some.csv"))
    problem = sf.Problem(recipe.load().train, max_loss=173, cell_m=250)
    sf.solve(problem, sf.Exact(gap=0.02)).save(tmp_path / "exact", recipe=recipe)
    sf.solve(problem, sf.Laplace()).save(tmp_path / "laplace", recipe=recipe)
    shutil.copy(tmp_path / "exact" / "certificate.npz", tmp_path / "laplace")
    manifest = export(tmp_path / "laplace", tmp_path / "dist")
    measured, proved = manifest["measured"]["training"], manifest["proved"]
    assert measured["loss"]["value"] <= 173 * (1 + 1e-9)
    assert (
        proved["gap"]
        == pytest.approx(1 - measured["bayes_error"]["value"] - proved["bound_grid"], abs=1e-5)
        and proved["gap"] > 0
    )
    assert (
        manifest["budget"]["max_loss"] == 173
        and manifest["grid"]["cell_m"] == 250
        and "training data" in manifest["accuracy_means"]
    )


def test_the_manifest_leads_with_check_ins_to_come_or_says_that_nobody_looked(runs, tmp_path):
    problem = sf.Problem(DATA.train, max_loss=173, cell_m=250)
    solution = sf.solve(problem, sf.Coin())
    solution.save(tmp_path / "bare")
    expected = export(tmp_path / "bare", tmp_path / "a")["to_come"]
    assert expected["loss"] is None and "not measured" in expected["why"]
    assert DATA.test is not None
    judged = judge(solution.mechanism, DATA.test)
    solution.save(tmp_path / "tested", test=judged)
    expected = export(tmp_path / "tested", tmp_path / "b")["to_come"]
    assert expected["loss"]["value"] == pytest.approx(judged.loss.value)
    assert expected["from"] == "held-out check-ins" and "why" not in expected
    assert expected["blind_error"] == pytest.approx(1 - judged.joint.prior.max())


def test_the_extension_names_the_blind_guess_where_the_bundle_does():
    to_come = {"loss": {"value": 170.0}, "bayes_error": {"value": 0.6}, "from": "folds"}
    bundle = {"from": "inside", "kind": "coin", "region": {"side_m": 6500}, "to_come": to_come}
    said = in_node(
        f"globalThis.chrome = {{ runtime: {{}} }};\n"
        f'const {{ bundleSentence }} = await import("{WEB.as_uri()}/extension/view.js");\n'
        "console.log(JSON.stringify(given.map(bundleSentence)));",
        [bundle, {**bundle, "to_come": {**to_come, "blind_error": 0.75}}],
    )
    assert "wrong 60 % of the time, by folds" in said[0]
    assert "wrong 60 % of the time (75 % without a report, the most" in said[1]


def test_of_an_older_run_the_blind_guess_is_that_of_its_training_data(tmp_path):
    """Its record does not state it; without the data nobody can say, and nothing is said."""
    some = DATA.train.take(np.arange(3, len(DATA.train), 7))
    write_split(sf.Split(some), tmp_path / "some.csv")
    recipe = Recipe(str(tmp_path / "some.csv"))
    solution = sf.solve(sf.Problem(recipe.load().train, max_loss=173, cell_m=250), sf.Coin())
    solution.save(tmp_path / "run", recipe=recipe, test=judge(solution.mechanism, DATA.test))
    run = sf.load_run(tmp_path / "run")
    older = replace(run.record, to_come=replace(run.record.to_come, blind_error=None))
    stored = older.as_dict()["to_come"]
    assert stored.pop("blind_error") is None and Outlook.from_dict(stored) == older.to_come
    found = _expected(replace(run, record=older))["blind_error"]
    assert found == pytest.approx(1 - np.bincount(some.secret).max() / len(some))
    (tmp_path / "some.csv").unlink()
    assert _expected(replace(run, record=older))["blind_error"] is None


@dataclass
class _Outlook:
    """What a run tells about check-ins to come."""

    how: str

    def as_dict(self):
        names = ("loss", "bayes_error", "information_bits", "exposed")
        figure = {"value": 170.0, "low": 160.0, "high": 182.5}
        return {
            "how": self.how,
            "confidence": 0.95,
            "checkins": 492,
            **dict.fromkeys(names, figure),
        }


@pytest.mark.parametrize(
    ("how", "source"),
    [("cross-fitted", "folds of its training data"), ("held-out", "held-out check-ins")],
)
def test_a_runs_own_estimate_comes_first_and_its_interval_widens_the_budget(runs, how, source):
    run = sf.load_run(runs / "coin")
    object.__setattr__(run.record, "to_come", _Outlook(how))
    found = _expected(run)
    assert found["loss"]["high"] == 182.5 and found["checkins"] == 492 and found["from"] == source
    assert budget_of(run).within == 12.5


def test_the_certificate_stays_out_of_a_bundle_unless_it_is_asked_for(tmp_path):
    some = DATA.train.take(np.arange(0, len(DATA.train), 60))
    problem = sf.Problem(some, max_loss=173, cell_m=250)
    sf.solve(problem, sf.Exact(gap=0.02)).save(tmp_path / "exact")
    sf.solve(problem, sf.Laplace()).save(tmp_path / "laplace")
    with pytest.raises(FileError, match="has no certificate"):
        export(tmp_path / "laplace", tmp_path / "none", with_certificate=True)
    assert not (tmp_path / "none").exists()
    shutil.copy(tmp_path / "exact" / "certificate.npz", tmp_path / "laplace")
    manifest = export(tmp_path / "laplace", tmp_path / "plain")
    assert manifest["holds_certificate"] is False
    assert not (tmp_path / "plain" / "certificate.npz").exists()
    manifest = export(tmp_path / "laplace", tmp_path / "with", with_certificate=True)
    assert manifest["holds_certificate"] is True and "certificate.npz" in manifest["files"]
    stored = tmp_path / "with" / "certificate.npz"
    assert stored.read_bytes() == (tmp_path / "exact" / "certificate.npz").read_bytes()
    stored.write_bytes(stored.read_bytes()[:-1])
    with pytest.raises(FileError, match="not the file that the manifest names"):
        load_bundle(tmp_path / "with")


def test_accuracy_is_the_distance_that_95_percent_stay_within(runs, bundles):
    """The runs' data was given in memory, so truths are spread evenly; of 20,000 reports 95 %
    within 0.7 % (deviation 0.15 %)."""
    manifest = load_bundle(bundles / "laplace")
    truth = (np.random.default_rng(0).random((20_000, 2)) - 0.5) * manifest["region"][
        "side_m"
    ] + np.array(manifest["region"]["centre"])
    off = np.hypot(*(sf.load_run(runs / "laplace").mechanism.sample(truth, seed=9) - truth).T)
    assert (
        0.943 < (off <= manifest["accuracy_m"]).mean() < 0.975
    )  # rounding up by at most 10 m adds at most 1.7 %


def test_what_cannot_be_a_graph_is_refused(tmp_path, runs):
    from sfumato.deploy.graphs import graph_of

    with pytest.raises(MechanismError, match="cannot be exported"):
        graph_of(sf.mechanism.Recorded(truths=np.zeros((1, 2)), reports=np.zeros((1, 2))))
    (tmp_path / "there").mkdir()
    with pytest.raises(FileError, match="exists"):
        export(runs / "coin", tmp_path / "there")


def test_a_report_is_kept_for_its_cell_until_its_time_is_over(bundles):
    script = f"""
    const {{ keeping, position }} = await import("{(WEB / "policy.js").as_uri()}");
    const device = await load(given);
    let now = 0;
    const policy = keeping(device, {{ how: {{ seconds: 600, cell_m: 25, within_m: null }}, now: () => now }});
    const here = {{ latitude: 48.857, longitude: 2.347 }};
    const first = policy.report(here), same = [];
    for (let i = 0; i < 30; i++) {{
      now += 15000;
      same.push(policy.report({{ latitude: 48.857 + i * 1e-7, longitude: 2.347 }}) === first);
    }}
    now = 10 * 60000 + 1;
    const later = Array.from({{ length: 30 }}, () => {{ policy.forget(); return policy.report(here); }});
    const sent = position({{ latitude: 1, longitude: 2, accuracy: 3 }}, 4);
    console.log(JSON.stringify({{ same, places: new Set(later.map((report) => JSON.stringify(report))).size, sent }}));
    """
    found = in_node(script, str(bundles / "laplace"))
    assert all(found["same"]) and found["places"] > 10
    blank = {"altitude": None, "altitudeAccuracy": None, "heading": None, "speed": None}
    assert found["sent"] == {
        "coords": {"latitude": 1, "longitude": 2, "accuracy": 3, **blank},
        "timestamp": 4,
    }


@pytest.mark.parametrize("seconds", [0, -1, "day", False])
def test_the_page_keeps_for_an_hour_where_the_time_is_none(bundles, seconds):
    """New draws of one place would average to it."""
    script = f"""
    const {{ keeping }} = await import("{(WEB / "policy.js").as_uri()}");
    const device = await load(given.bundle);
    let now = 0;
    const policy = keeping(device, {{ how: {{ seconds: given.seconds, cell_m: 25, within_m: null }}, now: () => now }});
    const many = (step) => new Set(Array.from({{ length: 30 }}, (_, i) => {{ now = i * step; return JSON.stringify(policy.report({{ latitude: 48.857, longitude: 2.347 }})); }})).size;
    console.log(JSON.stringify([many(100e3), many(3600e3) > 10]));
    """
    assert in_node(script, {"bundle": str(bundles / "laplace"), "seconds": seconds}) == [1, True]


def test_the_page_keeps_reports_as_the_run_says_and_within_its_cap(runs, tmp_path):
    """A report is kept for all of a cell, so it must lie within the cap of every place there."""
    shutil.copytree(runs / "codebook", tmp_path / "run")
    run = load_run(tmp_path / "run")
    capped = replace(run.mechanism, max_distance=300.0, keep=0.0)
    save_run(tmp_path / "run", replace(run.record, max_distance=300.0), capped)
    keep_reports(load_run(tmp_path / "run"), Keeping("week", cell_m=100.0))
    manifest = export(tmp_path / "run", tmp_path / "bundle")
    assert manifest["keeping"]["period"] == "week" and manifest["keeping"]["seconds"] == 604_800
    assert manifest["keeping"]["within_m"] == pytest.approx(300 - 100 / 2**0.5)
    script = f"""
    const {{ keeping }} = await import("{(WEB / "policy.js").as_uri()}");
    const device = await load(given);
    let now = 0, far = 0;
    const policy = keeping(device, {{ now: () => now }});
    const names = new Set();
    for (let week = 0; week < 300; week++) {{
      now = week * 604800000;
      const reports = new Set();
      for (const north of [0, 0.00005, 0.0001]) {{
        const place = {{ latitude: 48.8585 + north, longitude: 2.3483 }};
        const report = policy.report(place);
        reports.add(report);
        names.add(JSON.stringify(report));
        far = Math.max(far, device.off(device.truth(place), report));
      }}
      if (reports.size > 2) throw new Error("drawn anew within a week");
    }}
    console.log(JSON.stringify({{ far, places: names.size }}));
    """
    found = in_node(script, str(tmp_path / "bundle"))
    assert 200 < found["far"] <= 300.5 and found["places"] > 5


def test_a_kept_device_takes_outside_for_one_place_or_for_all(bundles):
    """As the guide writes it: refused without a word, moved to the edge and kept with one."""
    script = f"""
    const {{ keeping }} = await import("{(WEB / "policy.js").as_uri()}");
    const loaded = await load(given.folder);
    const device = keeping(loaded), clamping = keeping(loaded, {{ outside: "clamp" }});
    const said = (ask) => {{ try {{ return ask() && "answered"; }} catch (error) {{ return error.constructor.name; }} }};
    const first = device.report(given.place, {{ outside: "clamp" }});
    console.log(JSON.stringify({{
      refused: [said(() => device.report(given.place)), said(() => clamping.report(given.place, {{ outside: "refuse" }}))],
      all: said(() => clamping.report(given.place)),
      kept: Array.from({{ length: 20 }}, () => device.report(given.place, {{ outside: "clamp" }}) === first),
      first,
    }}));
    """
    found = in_node(
        script,
        {"folder": str(bundles / "laplace"), "place": {"latitude": 48.95, "longitude": 2.347}},
    )
    assert (
        found["refused"] == ["OutsideError"] * 2
        and found["all"] == "answered"
        and all(found["kept"])
    )
    assert (
        found["first"].keys() == {"latitude", "longitude", "accuracy"}
        and abs(found["first"]["latitude"] - 48.886) < 0.02
    )


@pytest.mark.parametrize(
    "place",
    [
        None,
        {},
        {"latitude": "48", "longitude": 2},
        {"latitude": 91, "longitude": 2},
        {"latitude": 40, "longitude": 2},
    ],
)
def test_a_bad_place_is_refused_without_repeating_it(bundles, place):
    script = """
    const device = await load(given.folder);
    let said = "answered";
    try { device.report(given.place); } catch (error) { said = error.message; }
    console.log(JSON.stringify(said));
    """
    said = in_node(script, {"folder": str(bundles / "laplace"), "place": place})
    assert said != "answered" and not any(number in said for number in ("48", "91", "40"))
