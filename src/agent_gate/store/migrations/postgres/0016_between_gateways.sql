CREATE TRIGGER peer_leases_told AFTER UPDATE OR DELETE ON peer_leases
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('peer_leases', 'id');

-- Many errands are written at once, so one statement tells of all of them. That one was taken is news for nobody.
CREATE FUNCTION agent_gate_tell_errands() RETURNS trigger AS $$ BEGIN
  INSERT INTO notices (gateway, at, topic, key) SELECT coalesce(current_setting('agent_gate.id', true), ''),
    extract(epoch FROM clock_timestamp()), 'errands', id FROM told WHERE state <> 'taken'; -- each errand
  IF FOUND THEN PERFORM pg_notify('agent_gate', ''); END IF; RETURN NULL; END
$$ LANGUAGE plpgsql;
CREATE FUNCTION agent_gate_tell_words() RETURNS trigger AS $$ BEGIN
  INSERT INTO notices (gateway, at, topic, key) SELECT coalesce(current_setting('agent_gate.id', true), ''),
    extract(epoch FROM clock_timestamp()), 'words', hearer FROM (SELECT DISTINCT hearer FROM told) AS hearers; -- each once
  PERFORM pg_notify('agent_gate', ''); RETURN NULL; END
$$ LANGUAGE plpgsql;
DROP TRIGGER errands_told ON errands;
CREATE TRIGGER errands_asked AFTER INSERT ON errands
  REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION agent_gate_tell_errands();
CREATE TRIGGER errands_ended AFTER UPDATE ON errands
  REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION agent_gate_tell_errands();
CREATE TRIGGER words_told AFTER INSERT ON words
  REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION agent_gate_tell_words();
