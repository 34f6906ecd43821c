-- The tables of results.sqlite, version 1. `PRAGMA user_version` is the version of the schema.

-- What was started in the folder and must be the same when it is resumed, such as a sweep.
CREATE TABLE experiment (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Hash of everything that determines its runs.
    digest TEXT NOT NULL,
    -- JSON.
    document TEXT NOT NULL,
    checksum TEXT NOT NULL,
    UNIQUE (kind, name)
) STRICT;

-- One run of a scenario. A run of which only values are kept has a row of its own next to that of the same run with a folder.
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    -- Hash of everything that determines the run: resolved scenario with controllers, world, seed, version of the program.
    inputs TEXT NOT NULL,
    scenario TEXT NOT NULL,
    -- Hash of the resolved scenario without its controllers.
    scenario_hash TEXT NOT NULL,
    -- JSON array: the controller of each flow, null for a flow without one.
    controllers TEXT NOT NULL,
    -- JSON array: the case and the changes by --set.
    changes TEXT NOT NULL,
    world TEXT NOT NULL,
    -- Two's complement for seeds above 2^63.
    seed INTEGER NOT NULL,
    -- Version of the program, and its commit if known.
    code TEXT NOT NULL,
    trace_hash TEXT NOT NULL,
    duration_s REAL NOT NULL,
    -- Order in which runs were stored.
    stored INTEGER NOT NULL,
    -- Name of its folder of Parquet tables under `runs`; null for a run of which only values are kept.
    directory TEXT UNIQUE,
    -- For a run whose process was killed: the time up to which there are rows, s.
    cut_at_s REAL,
    -- JSON: inputs, flows, hops and files of a run with a folder.
    about TEXT,
    -- JSON: the result of a run with a folder, as `run --json` prints it.
    document TEXT,
    -- Hash of the columns above without `id`, and hash of the run's values.
    checksum TEXT NOT NULL,
    values_checksum TEXT NOT NULL
) STRICT;
CREATE INDEX run_order ON run (stored);
CREATE UNIQUE INDEX run_identity ON run (inputs, scenario, controllers, changes, ifnull(cut_at_s, -1), directory IS NULL);

-- What is measured; '' for the run or the flow as a whole, and for a single window.
CREATE TABLE quantity (
    id INTEGER PRIMARY KEY,
    metric TEXT NOT NULL,
    flow TEXT NOT NULL,
    stream TEXT NOT NULL,
    window_from_s REAL NOT NULL,
    window_to_s REAL NOT NULL,
    each TEXT NOT NULL,
    UNIQUE (metric, flow, stream, window_from_s, window_to_s, each)
) STRICT;

CREATE TABLE value (
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    quantity INTEGER NOT NULL REFERENCES quantity,
    -- Null if the run has no value.
    value REAL,
    PRIMARY KEY (run, quantity)
) STRICT, WITHOUT ROWID;

-- The finished jobs of a sweep, by number.
CREATE TABLE job (
    experiment INTEGER NOT NULL REFERENCES experiment ON DELETE CASCADE,
    job INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    -- Hash of the experiment's digest, the number and the run's inputs.
    checksum TEXT NOT NULL,
    PRIMARY KEY (experiment, job)
) STRICT, WITHOUT ROWID;

-- A summary, comparison or validation of several runs: JSON.
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    document TEXT NOT NULL,
    checksum TEXT NOT NULL,
    UNIQUE (kind, key)
) STRICT;

-- The runs that a document summarises. A document is removed with any of them.
CREATE TABLE citation (
    document INTEGER NOT NULL REFERENCES document ON DELETE CASCADE,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    PRIMARY KEY (document, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX citation_of_run ON citation (run);
CREATE INDEX job_of_run ON job (run);
CREATE TRIGGER citation_removed AFTER DELETE ON citation BEGIN
    DELETE FROM document WHERE id = old.document;
END;

-- The table of results: one row for each value of each run.
CREATE VIEW results AS
SELECT scenario, scenario_hash, controllers, changes, world, seed, window_from_s, window_to_s, flow, stream, metric, each,
       value, code, trace_hash, inputs, run.id AS run
FROM value JOIN run ON run.id = value.run JOIN quantity ON quantity.id = value.quantity;
