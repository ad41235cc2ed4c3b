CREATE TRIGGER signed_in_agents_told AFTER INSERT OR UPDATE ON signed_in_agents
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('sign_in', 'name');
CREATE TRIGGER token_families_told AFTER INSERT OR UPDATE OF revoked_at ON token_families
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('sign_in', 'agent');
CREATE TRIGGER family_tokens_told AFTER INSERT ON family_tokens
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('sign_in', 'family');
