-- The gateways that share this store. Each is there until `ends_at`, by the database's clock, and moves that on while it
-- lives. `settled` says that what a dead one left behind was seen to.
CREATE TABLE gateways (
  id TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  host TEXT NOT NULL,
  pid BIGINT NOT NULL,
  address TEXT NOT NULL,
  started_at DOUBLE PRECISION NOT NULL,
  ends_at DOUBLE PRECISION NOT NULL,
  state TEXT NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL
);

-- What one gateway changed that others keep in memory. Only PostgreSQL fills it, by triggers.
CREATE TABLE notices (
  seq BIGSERIAL PRIMARY KEY,
  gateway TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  topic TEXT NOT NULL,
  key TEXT NOT NULL
);
CREATE INDEX notices_gateway ON notices (gateway, seq);

-- Which gateway has to run the call of a question; nobody once it was dispatched or will not run.
ALTER TABLE approvals ADD COLUMN gateway TEXT;
CREATE INDEX approvals_owed ON approvals (gateway) WHERE state = 'approved' AND gateway IS NOT NULL;

-- Sessions of clients that began with a handshake, so that another gateway can take one up.
CREATE TABLE mcp_sessions (
  id TEXT PRIMARY KEY,
  caller TEXT NOT NULL,
  used_at DOUBLE PRECISION NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX mcp_sessions_used ON mcp_sessions (used_at);

-- How much each caller did of late on each gateway, for limits that hold for all of them together.
CREATE TABLE usage (
  gateway TEXT NOT NULL,
  caller TEXT NOT NULL,
  counter TEXT NOT NULL,
  used INTEGER NOT NULL,
  ends_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (gateway, caller, counter)
);
