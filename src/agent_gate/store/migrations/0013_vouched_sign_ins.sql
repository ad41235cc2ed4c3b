-- The login at a provider that a sign-in came of, where it did.
ALTER TABLE token_families ADD COLUMN vouched TEXT;

-- Tokens that count once and were used, until they end anyway.
CREATE TABLE used_tokens (
  digest TEXT PRIMARY KEY,
  expires_at DOUBLE PRECISION NOT NULL
);
