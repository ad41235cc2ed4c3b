-- Components that were paired. A name is used once at a time; what was revoked stays, to be told from what never was.
CREATE TABLE peers (
  name TEXT PRIMARY KEY,
  component_type TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  identity_key TEXT NOT NULL,
  status TEXT NOT NULL,
  paired_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION,
  reason TEXT,
  last_seen DOUBLE PRECISION,
  body TEXT NOT NULL
);

-- Every certificate that was ever issued, so that each can be told from every other one.
CREATE TABLE peer_certificates (
  serial TEXT PRIMARY KEY,
  peer TEXT NOT NULL,
  fingerprint TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  state TEXT NOT NULL,
  issued_at DOUBLE PRECISION NOT NULL,
  not_after DOUBLE PRECISION NOT NULL,
  reason TEXT
);
CREATE INDEX peer_certificates_peer ON peer_certificates (peer, state);
CREATE INDEX peer_certificates_key ON peer_certificates (public_key);
