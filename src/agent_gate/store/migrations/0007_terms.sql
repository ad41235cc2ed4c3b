-- What the person who said yes made narrower, as JSON.
ALTER TABLE approvals ADD COLUMN terms TEXT;
