-- What calls answered, for people to look at, where results.keep says so: masked and cut.
CREATE TABLE seen_results (
  call TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  kind TEXT NOT NULL,
  size BIGINT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX seen_results_over ON seen_results (expires_at);
