CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    created TEXT NOT NULL,
    spec TEXT NOT NULL,
    kernel TEXT NOT NULL,
    op TEXT,
    options TEXT NOT NULL
);

CREATE TABLE events (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    stage TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (run, sequence),
    UNIQUE (run, key)
);

CREATE TRIGGER events_are_append_only BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
