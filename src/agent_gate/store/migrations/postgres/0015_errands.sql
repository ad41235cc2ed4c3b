CREATE TRIGGER errands_told AFTER INSERT OR UPDATE OF state ON errands
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('errands', 'id');
CREATE TRIGGER listings_told AFTER INSERT OR UPDATE OF listing ON sources
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('listings', 'key');
