-- What a person sees beside a question, where its source has something to show.
CREATE TABLE pictures (
  approval TEXT PRIMARY KEY,
  media_type TEXT NOT NULL,
  body BYTEA NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
);
