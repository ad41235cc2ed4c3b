-- Who may ask to come in: clients that registered themselves, or that a document of theirs describes.
CREATE TABLE sign_in_clients (
  id TEXT PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  created_at DOUBLE PRECISION NOT NULL,
  used_at DOUBLE PRECISION,
  body TEXT NOT NULL
);

-- One sign-in of one browser, under the id of its call: asked, granted, coded, done, over.
CREATE TABLE sign_ins (
  id TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  browser TEXT NOT NULL,
  request TEXT NOT NULL,
  address TEXT NOT NULL,
  code TEXT UNIQUE,
  code_expires_at DOUBLE PRECISION,
  family TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  body TEXT NOT NULL,
  granted TEXT,
  UNIQUE (browser, request)
);

CREATE TABLE sign_in_invites (
  digest TEXT PRIMARY KEY,
  made_by TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  used_at DOUBLE PRECISION
);

CREATE TABLE signed_in_agents (
  name TEXT PRIMARY KEY,
  client TEXT NOT NULL,
  person TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  seen_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION,
  body TEXT NOT NULL
);

-- What came of one sign-in: its tokens live and end together.
CREATE TABLE token_families (
  id TEXT PRIMARY KEY,
  agent TEXT NOT NULL,
  client TEXT NOT NULL,
  resource TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION
);

CREATE TABLE family_tokens (
  digest TEXT PRIMARY KEY,
  family TEXT NOT NULL,
  kind TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  used_at DOUBLE PRECISION
);
CREATE INDEX family_tokens_family ON family_tokens (family);
