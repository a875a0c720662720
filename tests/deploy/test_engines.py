"""One table through every engine: the same reports as from Arrow, every other column untouched.

A million rows run in `python -m benchmarks engines`; here are few, enough for several batches.
"""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.deploy.engines.duckdb import register
from sfumato.errors import DataError
from tests.deploy.test_table import KEY, geometry_of, table_of

duckdb = pytest.importorskip("duckdb")
gpd = pytest.importorskip("geopandas")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

TABLE = table_of(3000)
OTHERS = ("time", "note", "stars", "number")


@pytest.fixture(scope="module")
def run(runs):
    return runs / "laplace"


@pytest.fixture(scope="module")
def arrow(run):
    return sf.deploy.report(TABLE, run, key=KEY, row="number", drop="user")


def report(frame, run, **options):
    return sf.deploy.report(frame, run, key=KEY, row="number", **{"drop": "user", **options})


def _lists(table) -> dict[str, list]:
    return {name: table[name].to_pylist() for name in ("lat", "lon", *OTHERS)}


def test_a_pandas_frame_gets_the_reports_of_arrow(run, arrow):
    frame = TABLE.to_pandas()
    frame.index = frame.index * 3
    frame.attrs["extent"] = [2.3, 48.8]
    made = report(frame, run)
    assert made.attrs == {} and frame.attrs and list(made.columns) == arrow.column_names
    pd.testing.assert_frame_equal(made[list(OTHERS)], frame[list(OTHERS)])
    for name in ("lat", "lon"):
        assert made[name].dtype == frame[name].dtype
        np.testing.assert_array_equal(made[name].to_numpy(), arrow[name].to_numpy())
    assert report(frame.set_index("user"), run, drop=(), keep="user").index.name == "user"


def test_a_pandas_index_that_holds_the_place_is_refused(run):
    frame = TABLE.to_pandas()
    frame.index = pd.Index(frame["lat"].to_numpy() * 1e7, name="spot")
    with pytest.raises(DataError, match="'spot' \\(a coordinate in ten-millionths\\)"):
        report(frame, run)


def test_a_pandas_index_is_answered_and_dropped_as_columns_are(run, arrow):
    frame = TABLE.to_pandas()
    made = report(frame.set_index(["lat", "note", "lon"]), run)
    assert made.index.names == ["lat", "note", "lon"]
    for name in ("lat", "lon"):
        np.testing.assert_array_equal(made.index.get_level_values(name), arrow[name].to_numpy())
    assert list(made.index.get_level_values("note")) == list(frame["note"])
    for index, kept in ((["user"], [None]), (["user", "note"], ["note"]), (["note"], ["note"])):
        made = report(frame.set_index(index), run)
        assert made.index.names == kept and "user" not in made
    spots = frame["lat"].map("{:.5f}".format) + "/" + frame["lon"].map("{:.5f}".format)
    unnamed = report(frame.set_axis(spots), run, drop=("user", "__index_level_0__"))
    assert unnamed.index.equals(pd.RangeIndex(len(frame)))
    coded = frame.set_index(pd.CategoricalIndex(["a"] * 3000, categories=["a", *set(spots)]))
    assert list(report(coded, run).index.categories) == ["a"]


def test_a_geopandas_index_that_is_dropped_is_dropped(run):
    plain = TABLE.to_pandas().head(50)
    points = gpd.points_from_xy(plain.pop("lon").astype(float), plain.pop("lat"), crs=4326)
    frame = gpd.GeoDataFrame(plain, geometry=points)
    spots = frame.geometry.to_wkt().rename("spot")
    with pytest.raises(DataError, match="'spot'"):
        report(frame.set_index(spots), run)
    made = report(frame.set_index(spots), run, drop=("user", "spot"))
    assert made.index.equals(pd.RangeIndex(50)) and not made.geometry.isna().any()
    assert report(frame.set_index("user"), run).index.equals(pd.RangeIndex(50))


@pytest.mark.parametrize("crs", [4326, 3857, 2154])
def test_geopandas_in_any_reference_system(run, arrow, crs):
    plain = TABLE.to_pandas()
    points = gpd.points_from_xy(plain.pop("lon").astype(float), plain.pop("lat"), crs=4326)
    frame = gpd.GeoDataFrame(plain, geometry=points).to_crs(crs)
    made = report(frame, run)
    assert isinstance(made, gpd.GeoDataFrame) and made.crs == frame.crs and len(made) == 3000
    pd.testing.assert_frame_equal(
        pd.DataFrame(made[list(OTHERS)]), pd.DataFrame(frame[list(OTHERS)])
    )
    back = made.geometry.to_crs(4326)
    share = np.mean(np.abs(back.y.to_numpy() - arrow["lat"].to_numpy()) < 1e-6)
    assert share == 1.0 if crs == 4326 else share > 0.99  # a place is keyed to a millimetre


def test_geometries_that_are_not_one_point_each_are_refused(run):
    from shapely import LineString

    plain = TABLE.to_pandas().head(50)
    points = gpd.points_from_xy(plain.pop("lon").astype(float), plain.pop("lat"))
    frame = gpd.GeoDataFrame(plain, geometry=points, crs=4326)
    several = frame.assign(home=frame.geometry)
    mixed = frame.copy()
    mixed.loc[3, "geometry"] = LineString([(2, 48), (3, 49)])
    missing = frame.copy()
    missing.loc[3, "geometry"] = None
    for bad, words in (
        (gpd.GeoDataFrame(plain, geometry=points), "without definition"),
        (
            frame.set_crs('LOCAL_CS["hall",UNIT["metre",1]]', allow_override=True),
            "does not say where on Earth it is",
        ),
        (several, "several geometries, geometry, home"),
        (mixed, "holds LineString; expected points"),
        (frame.head(0), "0 rows"),
        (
            frame.assign(again=frame.geometry.to_wkb().astype(object)),
            r"'again' \(the place in packed bytes\)",
        ),
    ):
        with pytest.raises(DataError, match=words):
            report(bad, run)
    assert list(report(several, run, drop=("user", "home")).columns) == list(frame.columns[1:])
    made = report(missing, run)
    assert made.geometry.isna().tolist() == [row == 3 for row in range(50)]


def test_geoparquet_of_geopandas_is_read_by_arrow_and_back(run, tmp_path):
    plain = TABLE.to_pandas().head(500)
    points = gpd.points_from_xy(plain.pop("lon").astype(float), plain.pop("lat"), crs=4326)
    gpd.GeoDataFrame(plain, geometry=points).to_parquet(
        tmp_path / "in.parquet", write_covering_bbox=True
    )
    made = report(pa.parquet.read_table(tmp_path / "in.parquet"), run)
    pa.parquet.write_table(made, tmp_path / "out.parquet")
    back = gpd.read_parquet(tmp_path / "out.parquet")
    assert len(back) == 500 and back.crs.to_epsg() in (4326, None)
    assert not np.isclose(back.geometry.y, points.y, rtol=0, atol=1e-7).any()
    np.testing.assert_array_equal(
        [box["ymin"] for box in made["bbox"].to_pylist()], back.geometry.y
    )


@pytest.mark.parametrize("lazy", [False, True])
def test_a_polars_frame_gets_the_reports_of_arrow(run, arrow, lazy):
    frame = pl.from_arrow(TABLE)
    made = report(frame.lazy(), run).collect() if lazy else report(frame, run)
    assert made.schema == frame.drop("user").schema
    assert made.select(OTHERS).equals(frame.select(OTHERS))
    assert made["lat"].to_list() == arrow["lat"].to_pylist()
    assert made["lon"].to_list() == arrow["lon"].to_pylist()


def test_a_duckdb_relation_gets_the_reports_of_arrow(run, arrow):
    connection = duckdb.connect()
    connection.register("source", TABLE)
    connection.register("made", report(connection.sql("from source"), run))
    connection.sql("create table sanitized as from made")
    out = connection.sql("from sanitized order by number").to_arrow_table()
    assert _lists(out) == _lists(arrow)


def test_the_duckdb_function_repeats_its_reports(run):
    connection = duckdb.connect()
    register(connection, run, key=KEY)
    connection.register("source", TABLE)
    query = (
        "select sfumato_report(number::varchar, lat, lon) as r, number from source order by number"
    )
    one, two = (connection.sql(query).to_arrow_table() for _ in range(2))
    assert one.equals(two) and one.num_rows == 3000
    latitude = np.array([place["lat"] for place in one["r"].to_pylist()])
    assert np.mean(np.isclose(latitude, TABLE["lat"].to_numpy(), rtol=0, atol=1e-7)) < 0.01
    empty = connection.sql("select sfumato_report('a', null, 2.3)").fetchall()
    assert empty == [(None,)]
    with pytest.raises(duckdb.Error, match="outside the mechanism's region"):
        connection.sql("select sfumato_report('a', 10.0, 2.3)").fetchall()


def test_a_geometry_in_duckdb_is_replaced(run):
    connection = duckdb.connect()
    source = geometry_of(TABLE.slice(0, 100))
    connection.register("source", source)
    out = report(connection.sql('select number, geometry, "user" from source'), run)
    assert out.num_rows == 100 and out["geometry"].to_pylist() != source["geometry"].to_pylist()


def test_no_engine_is_imported_by_the_core():
    code = (
        "import sys, sfumato as sf; sf.deploy.report; sf.sanitize; print(sorted(set(sys.modules) &"
        " {'pandas', 'geopandas', 'polars', 'duckdb', 'pyspark', 'distributed', 'shapely'}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
