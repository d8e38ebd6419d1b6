-- Keys sort by bytes, as they do in the other engines.
CREATE TABLE argosy.document (
    kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL, body text NOT NULL,
    PRIMARY KEY (kind, id)
) WITH (fillfactor = 75);

CREATE TABLE argosy.change (
    revision bigint PRIMARY KEY, at bigint NOT NULL, documents text NOT NULL
);

-- One row: the feed holds the changes after `floor`, up to `head`.
CREATE TABLE argosy.feed (head bigint NOT NULL, floor bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO argosy.feed VALUES (0, 0);

CREATE TABLE argosy.entry (
    stream text COLLATE "C" NOT NULL, sequence bigint NOT NULL,
    subject text COLLATE "C" NOT NULL, at bigint NOT NULL, revision bigint NOT NULL,
    body text NOT NULL, previous text NOT NULL, hash text NOT NULL,
    PRIMARY KEY (stream, sequence)
);
CREATE INDEX entry_subject ON argosy.entry (stream, subject, sequence);

CREATE TABLE argosy.stream (
    name text COLLATE "C" PRIMARY KEY, sequence bigint NOT NULL, hash text NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE argosy.lease (
    name text COLLATE "C" PRIMARY KEY, holder text NOT NULL, epoch bigint NOT NULL,
    until bigint NOT NULL
) WITH (fillfactor = 10);
