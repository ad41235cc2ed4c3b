-- What only one process at a time may do. A lease that ended may be taken by anybody.
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
);
