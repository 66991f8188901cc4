"""Results of a run: tables, and what was run. The columns are those of `shortlane.schema()`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shortlane import _native
from shortlane.errors import InputError

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["SCHEMA_VERSION", "Results", "Table", "read", "schema"]

#: Changes when a column changes its meaning or goes; new columns leave it alone.
SCHEMA_VERSION: int = _native.SCHEMA_VERSION


def schema() -> dict[str, list[dict[str, Any]]]:
    """Every table of results with its columns in order.

    A column has `name`, `kind` (boolean, integer, float or text), `nullable`, `unit`, `meaning`.
    """
    return _native.schema()


class Table:
    """A table of results, which any Arrow library reads without a copy.

    It has the Arrow PyCapsule interface: `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `duckdb.from_arrow(table)`. Text columns are Arrow string views.
    """

    def __init__(self, name: str, source: "_native.Table | Callable[[], polars.DataFrame]") -> None:
        """Show a native table, or what `source` reads when it is first asked for."""
        self.name = name
        self._source = source
        self._frame: polars.DataFrame | None = None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table as a stream of Arrow record batches."""
        if isinstance(self._source, _native.Table):
            return self._source.__arrow_c_stream__(requested_schema)
        return self.polars().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._source) if isinstance(self._source, _native.Table) else len(self.polars())

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self)} rows, {len(self.columns)} columns>"

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        if isinstance(self._source, _native.Table):
            return self._source.columns
        return self.polars().columns

    def polars(self) -> "polars.DataFrame":
        """Give the table as a polars frame; it shares the table's memory."""
        if self._frame is None:
            import polars

            if isinstance(self._source, _native.Table):
                self._frame = polars.DataFrame(self._source)
            else:
                self._frame = self._source()
        return self._frame

    def pandas(self) -> "pandas.DataFrame":
        """Give the table as a pandas frame, which is a copy; it takes pandas and pyarrow."""
        return self.polars().to_pandas()


class Results:
    """What came of a simulation, a replay, or the files of one.

    Tables are attributes, as polars frames: `results.flows`; `results["flows"]` is the
    :class:`Table`.
    """

    info: dict[str, Any]
    """What was run: the content of `run.json`."""
    summary: Any
    """The `summary` of `shortlane sim --json`, or the `schedulers` of `shortlane replay --json`;
    empty of results that were read from files."""
    text: str
    """What the command prints; empty of results that were read from files."""
    warnings: list[str]
    """What should be known before the figures are believed."""
    tables: Mapping[str, Table]
    """The tables that there are, by name."""

    def __init__(
        self,
        info: dict[str, Any],
        tables: Mapping[str, Table],
        summary: Any = None,
        text: str = "",
        warnings: list[str] | None = None,
    ) -> None:
        """Bring together what a run or a directory has."""
        self.info = info
        self.tables = tables
        self.summary = {} if summary is None else summary
        self.text = text
        self.warnings = warnings or []

    def write(self, directory: str | Path, format: Literal["parquet", "csv"] = "parquet") -> None:
        """Write the tables and `run.json` to a directory: the files of the command's `--out`.

        A table of events is written as well. `run.json` is the last to appear: a directory with it
        is complete. Raises `RunError` if a file cannot be written.
        """
        _native.write(str(directory), format, json.dumps(self.info), self.tables)

    def __getitem__(self, name: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            known = ", ".join(self.tables)
            raise KeyError(f"no table {name!r} in these results; there are {known}") from None

    def __getattr__(self, name: str) -> "polars.DataFrame":
        tables = self.__dict__.get("tables", {})
        if name in tables:
            frame: polars.DataFrame = tables[name].polars()
            return frame
        known = ", ".join(tables)
        raise AttributeError(f"results have no {name!r}; their tables are {known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(table)} {name}" for name, table in self.tables.items())
        return f"<Results of {self.info.get('run', '?')}: {sizes}>"

    def __str__(self) -> str:
        return self.text or repr(self)


def of_native(finished: "_native.Finished") -> Results:
    """Results of what the extension module has run."""
    tables = {name: Table(name, table) for name, table in finished.tables.items()}
    return Results(
        json.loads(finished.info),
        tables,
        json.loads(finished.summary),
        finished.text,
        finished.warnings,
    )


def read(directory: str | Path) -> Results:
    """Read a directory that `sim`, `replay` or `lab` wrote with `--out`, as Parquet or CSV.

    Tables are read when they are first looked at. Raises `InputError` for a directory without
    results, incomplete ones, or those of another schema version.
    """
    directory = Path(directory)
    info = _run_info(directory)
    tables = {}
    for name, columns in schema().items():
        for form in ("parquet", "csv"):
            path = directory / f"{name}.{form}"
            if path.exists():
                tables[name] = Table(name, _reader(path, form, columns))
                break
    return Results(info, tables)


def _run_info(directory: Path) -> dict[str, Any]:
    path = directory / "run.json"
    try:
        info = json.loads(path.read_text())
        found = info["schema"]
    except OSError as error:
        what = "it takes a directory that `sim`, `replay` or `lab` wrote with --out"
        raise InputError(f"{directory}: no run.json ({error.strerror}); {what}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: not that of a run: {error!r}") from None
    if found != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema is {found}, written by Shortlane {info.get('version', '?')}; "
            f"this version reads schema {SCHEMA_VERSION}"
        )
    assert isinstance(info, dict)
    return info


def _reader(
    path: Path, form: str, columns: list[dict[str, Any]]
) -> "Callable[[], polars.DataFrame]":
    def load() -> "polars.DataFrame":
        import polars

        kinds: dict[str, Any] = {
            "boolean": polars.Boolean,
            "integer": polars.Int64,
            "float": polars.Float64,
            "text": polars.String,
        }
        try:
            if form == "parquet":
                return polars.read_parquet(path)
            types = {column["name"]: kinds[column["kind"]] for column in columns}
            return polars.read_csv(path, schema_overrides=types)
        except (polars.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{path}: not a table of results: {error}") from None

    return load
