-- A call of a source that another gateway runs: asked for here, taken by one gateway and answered there. What is asked and
-- what is answered are sealed under a key that is not in the database. States: waiting, taken, done, refused, withdrawn, lost.
CREATE TABLE errands (
  id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  call TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  taken_by TEXT NOT NULL,
  state TEXT NOT NULL,
  ends_at DOUBLE PRECISION NOT NULL,
  body BYTEA NOT NULL,
  answer BYTEA
);
