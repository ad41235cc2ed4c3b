-- What paired components may do for a while. `gateway` has the stream that a lease ends with, where it is bound to one.
CREATE TABLE peer_leases (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  gateway TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL
);
CREATE INDEX peer_leases_owner ON peer_leases (owner);

-- What one gateway says to another about something that both have a part in, until it is heard.
CREATE TABLE words (
  seq BIGSERIAL PRIMARY KEY,
  teller TEXT NOT NULL,
  hearer TEXT NOT NULL,
  kind TEXT NOT NULL,
  about TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  body BYTEA NOT NULL
);
CREATE INDEX words_hearer ON words (hearer, seq);

-- `turn` marks what one look took together. `wanted_of` is the only gateway that may take an errand, where it matters which.
ALTER TABLE errands ADD COLUMN turn TEXT;
ALTER TABLE errands ADD COLUMN wanted_of TEXT;
