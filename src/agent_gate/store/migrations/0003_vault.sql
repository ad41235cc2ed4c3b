-- The vault's own key, wrapped by the master key, which is not in the database. There is one at a time: slot 1.
CREATE TABLE vault_keys (
  slot INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  master TEXT NOT NULL,
  salt TEXT NOT NULL,
  wrapped BYTEA NOT NULL,
  created_at DOUBLE PRECISION NOT NULL
);

-- What the vault keeps: one sealed value per owner and field. `version` counts its changes, for compare-and-set.
CREATE TABLE vault (
  owner TEXT NOT NULL,
  field TEXT NOT NULL,
  key TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  version INTEGER NOT NULL,
  updated_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (owner, field)
);
