-- A notice is written in the transaction of the change it tells of, whoever makes that change. The notification only says
-- that there is something to read, so that one which is lost costs the time until the next look.
CREATE FUNCTION agent_gate_tell() RETURNS trigger AS $$ DECLARE told text; BEGIN
  IF TG_OP = 'DELETE' THEN EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO told USING OLD; -- of what is gone
  ELSE EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO told USING NEW; END IF; -- of what is there
  INSERT INTO notices (gateway, at, topic, key) VALUES (coalesce(current_setting('agent_gate.id', true), ''),
    extract(epoch FROM clock_timestamp()), TG_ARGV[0], coalesce(told, '')); PERFORM pg_notify('agent_gate', ''); RETURN NULL; END
$$ LANGUAGE plpgsql;

CREATE TRIGGER approvals_told AFTER INSERT OR UPDATE OF state ON approvals
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('approvals', 'id');
CREATE TRIGGER grants_told AFTER INSERT OR UPDATE OF revoked_at ON grants
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('grants', 'caller');
CREATE TRIGGER results_told AFTER INSERT ON results
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('results', 'call');
CREATE TRIGGER tokens_told AFTER INSERT OR UPDATE OR DELETE ON tokens
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('tokens', 'name');
CREATE TRIGGER pins_told AFTER INSERT OR UPDATE OR DELETE ON pins
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('pins', 'tool');
CREATE TRIGGER vault_told AFTER INSERT OR UPDATE OR DELETE ON vault
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('vault', 'owner');
CREATE TRIGGER peers_told AFTER INSERT OR UPDATE OF status, body ON peers
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('peers', 'name');
CREATE TRIGGER peer_certificates_told AFTER INSERT OR UPDATE OR DELETE ON peer_certificates
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('peers', 'peer');
CREATE TRIGGER mcp_sessions_told AFTER DELETE ON mcp_sessions
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('sessions', 'id');
CREATE TRIGGER gateways_told AFTER INSERT OR UPDATE OF state OR DELETE ON gateways
  FOR EACH ROW EXECUTE FUNCTION agent_gate_tell('gateways', 'id');
