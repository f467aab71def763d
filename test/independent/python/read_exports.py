"""Reads the export files with one program, and prints the types of its columns and its rows as JSON.

Arguments: the folder of the files, the program ("pandas", "polars", "duckdb" or "sqlite3"). Values are those of the
program: an instant as an RFC 3339 text with microseconds, a missing value as null.
"""

import datetime
import json
import math
import sqlite3
import sys

folder, program = sys.argv[1:]
ALL = ("parquet", "csv", "ndjson", "sqlite")
TABLES = {"machines": ALL, "prices": ALL}
INSTANTS = {"machines": ["as_of"], "prices": ["valid_from", "valid_to"]}


def plain(value):
    """Returns the value as JSON has it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.timezone.utc)
        return utc.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
    return value.item() if hasattr(value, "item") else value


def rows(names, values):
    return [dict(zip(names, (plain(value) for value in row), strict=True)) for row in values]


def by_pandas(table, kind):
    import pandas

    path = f"{folder}/{table}.{kind}"
    if kind == "parquet":
        frame = pandas.read_parquet(path)
    elif kind == "csv":
        # An empty field is null and everything else is a value: a machine may be called "NA".
        frame = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    elif kind == "ndjson":
        # Without `precise_float` pandas is wrong in the last digits of a price.
        frame = pandas.read_json(path, lines=True, dtype=False, precise_float=True)
    else:
        with sqlite3.connect(path) as database:
            frame = pandas.read_sql(f"select * from {table}", database)
    if kind != "parquet":
        for name in INSTANTS[table]:
            frame[name] = pandas.to_datetime(frame[name], utc=True, format="ISO8601")
    types = {name: str(frame[name].dtype) for name in frame}
    for name in INSTANTS[table]:
        assert types[name].startswith("datetime64") and "UTC" in types[name], types
    frame = frame.astype(object).where(frame.notna(), None)
    return types, rows(frame.columns, frame.itertuples(index=False, name=None))


def by_polars(table, kind):
    import polars

    path = f"{folder}/{table}.{kind}"
    if kind == "parquet":
        frame = polars.read_parquet(path)
    elif kind == "csv":
        frame = polars.read_csv(path, infer_schema_length=None, try_parse_dates=True)
    elif kind == "ndjson":
        frame = polars.read_ndjson(path, infer_schema_length=None)
    else:
        frame = polars.read_database(f"select * from {table}", sqlite3.connect(path), infer_schema_length=None)
    # Instants in text formats are text. A column of nulls has no type.
    frame = frame.with_columns(
        polars.col(name).cast(polars.String).str.to_datetime(time_unit="us", time_zone="UTC")
        for name in INSTANTS[table]
        if frame.schema[name] in (polars.String, polars.Null)
    )
    types = {name: str(kind) for name, kind in frame.schema.items()}
    for name in INSTANTS[table]:
        assert types[name] == "Datetime(time_unit='us', time_zone='UTC')", types
    return types, rows(frame.columns, frame.iter_rows())


def by_duckdb(table, kind):
    import duckdb

    path = f"{folder}/{table}.{kind}"
    database = duckdb.connect()
    database.execute("set TimeZone = 'UTC'")
    source = {
        "parquet": f"read_parquet('{path}')",
        "csv": f"read_csv('{path}', header = true, allow_quoted_nulls = false, nullstr = '')",
        "ndjson": f"read_ndjson('{path}')",
    }[kind]
    shown = ", ".join(f"{name}::timestamptz as {name}" for name in INSTANTS[table])
    replaced = f"replace ({shown})" if shown else ""
    found = database.execute(f"select * {replaced} from {source}")
    types = {name: str(kind) for name, kind, *_ in found.description}
    return types, rows(types, found.fetchall())


def by_sqlite3(table, kind):
    database = sqlite3.connect(f"{folder}/{table}.{kind}")
    found = database.execute(f"select * from {table}")
    names = [name for name, *_ in found.description]
    types = {name: kind for _, name, kind, *_ in database.execute(f"pragma table_info({table})")}
    return types, rows(names, found.fetchall())


READERS = {
    "pandas": (by_pandas, ("parquet", "csv", "ndjson", "sqlite")),
    "polars": (by_polars, ("parquet", "csv", "ndjson", "sqlite")),
    "duckdb": (by_duckdb, ("parquet", "csv", "ndjson")),
    "sqlite3": (by_sqlite3, ("sqlite",)),
}

read, kinds = READERS[program]
found = {}
for table, made in TABLES.items():
    for kind in [each for each in kinds if each in made]:
        types, content = read(table, kind)
        found[f"{table}.{kind}"] = {"types": types, "rows": content}
print(json.dumps(found, allow_nan=False))
