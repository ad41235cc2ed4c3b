-- Types are chosen so that both engines take this file as it is: SQLite derives REAL from DOUBLE PRECISION,
-- INTEGER from BIGINT, and stores bytes in a BYTEA column unchanged.

CREATE TABLE record (
  call TEXT NOT NULL,
  step INTEGER NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  state TEXT NOT NULL,
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  body TEXT NOT NULL,
  chain TEXT NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (chain, seq),
  UNIQUE (call, step)
);
-- One index for every search: rows that do not fit are passed over inside it, and each row extends only its end.
CREATE INDEX record_at ON record (at, caller, tool, state);

CREATE TABLE seals (
  chain TEXT NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  mac TEXT NOT NULL,
  open_from BIGINT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (chain, seq)
);

CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  call TEXT NOT NULL UNIQUE,
  caller TEXT NOT NULL,
  session TEXT,
  tool TEXT NOT NULL,
  signature TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  answered_at DOUBLE PRECISION,
  answered_by TEXT,
  channel TEXT,
  verdict TEXT,
  reason TEXT,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX approvals_open ON approvals (caller, tool, arguments_hash) WHERE state = 'pending';
CREATE INDEX approvals_due ON approvals (state, expires_at);

CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_hash TEXT,
  definition_hash TEXT,
  session TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION,
  created_by TEXT NOT NULL,
  approval TEXT,
  revoked_at DOUBLE PRECISION,
  used INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL
);
CREATE INDEX grants_caller ON grants (caller, tool);

CREATE TABLE results (
  call TEXT PRIMARY KEY,
  caller TEXT NOT NULL,
  session TEXT,
  client_id TEXT,
  tool TEXT NOT NULL,
  signature TEXT NOT NULL,
  arguments TEXT NOT NULL,
  state TEXT NOT NULL,
  body BYTEA,
  kind TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION,
  acknowledged_at DOUBLE PRECISION
);
CREATE INDEX results_caller ON results (caller, acknowledged_at);

CREATE TABLE idempotency (
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  key TEXT NOT NULL,
  call TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  expires_at DOUBLE PRECISION,
  PRIMARY KEY (caller, tool, key)
);

CREATE TABLE pins (
  tool TEXT PRIMARY KEY,
  pin TEXT NOT NULL,
  definition TEXT NOT NULL,
  first_seen DOUBLE PRECISION NOT NULL,
  changed_at DOUBLE PRECISION,
  pending TEXT
);

CREATE TABLE sources (
  key TEXT PRIMARY KEY,
  era TEXT,
  listing TEXT,
  updated_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE kv (
  name TEXT PRIMARY KEY,
  value TEXT
);

CREATE TABLE artifacts (
  handle TEXT PRIMARY KEY,
  call TEXT NOT NULL,
  caller TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  digest TEXT NOT NULL,
  body BYTEA NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION
);

CREATE TABLE deliveries (
  approval TEXT NOT NULL,
  channel TEXT NOT NULL,
  message TEXT,
  state TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (approval, channel)
);

CREATE TABLE tokens (
  name TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION,
  body TEXT
);
