-- What the numbers were, added up by gateway and by stretches of time; a few hundred rows however many calls there were.
CREATE TABLE trends (
  gateway TEXT NOT NULL,
  step INTEGER NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (gateway, step, at)
);
CREATE INDEX trends_at ON trends (step, at);
