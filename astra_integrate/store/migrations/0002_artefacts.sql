CREATE TABLE artefacts (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (run, name)
);
