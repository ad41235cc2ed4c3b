-- Where the beginning of a chain was cut away on purpose, sealed by the key that is outside the database.
CREATE TABLE cuts (
  chain TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  made_by TEXT NOT NULL,
  mac TEXT NOT NULL,
  PRIMARY KEY (chain, at)
);
