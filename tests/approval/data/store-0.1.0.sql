BEGIN TRANSACTION;
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  call TEXT NOT NULL UNIQUE,
  caller TEXT NOT NULL,
  session TEXT,
  tool TEXT NOT NULL,
  signature TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  definition_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  asked_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  answered_at DOUBLE PRECISION,
  answered_by TEXT,
  channel TEXT,
  verdict TEXT,
  reason TEXT,
  body TEXT NOT NULL
);
INSERT INTO "approvals" VALUES('01a1e6f8930a71258c0b8f82fb11b256','00000000000000000000000000000001','anna','run-1','lab:act#c5e43f1c','lab__act(deep={"list":%5B1%2Cnull%2C"ä"%5D}, n=1)','ad391fb150f8ea5f6203f975460589e3cd521e006528b58253dba1e724b98d90','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','pending',1000.0,1900.0,NULL,NULL,NULL,NULL,NULL,'{"wire":"lab__act","arguments":{"n":1,"deep":{"list":[1,null,"ä"]}},"surface":"websocket","mode":"proxy","sentence":"","secret":[],"client_id":"c1","idempotency_key":"key-1","timeout":5.0,"meta":{"note":{"x":1}},"trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","caller":{"name":"anna","kind":"agent","namespaces":["lab"],"mode":"proxy","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":5,"budget":300},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e6f89315738e89f644d517b1fe65','00000000000000000000000000000002','anna','run-1','lab:act#c5e43f1c','lab__act(deep={"list":%5B1%2Cnull%2C"ä"%5D}, n=2)','82f32be175908e297bc2622ec2ba1f71c7ba3226fa9298b076c317075ece6afa','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','approved',1000.0,1900.0,1000.0,'operator','test','always','fine','{"wire":"lab__act","arguments":{"n":2,"deep":{"list":[1,null,"ä"]}},"surface":"websocket","mode":"proxy","sentence":"","secret":[],"client_id":"c2","idempotency_key":"key-2","timeout":5.0,"meta":{"note":{"x":1}},"trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","caller":{"name":"anna","kind":"agent","namespaces":["lab"],"mode":"proxy","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":5,"budget":300},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e6f8932078548c81d8575cba10d3','00000000000000000000000000000003','anna','run-1','lab:act#c5e43f1c','lab__act(deep={"list":%5B1%2Cnull%2C"ä"%5D}, n=3)','1fa671f16f214cdc5f8a6fde9d40960c09448d7c3d48e53e8098c392dc7ca579','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','denied',1000.0,1900.0,1000.0,'operator','test','deny','not now','{"wire":"lab__act","arguments":{"n":3,"deep":{"list":[1,null,"ä"]}},"surface":"websocket","mode":"proxy","sentence":"","secret":[],"client_id":"c3","idempotency_key":"key-3","timeout":5.0,"meta":{"note":{"x":1}},"trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","caller":{"name":"anna","kind":"agent","namespaces":["lab"],"mode":"proxy","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":5,"budget":300},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
CREATE TABLE artifacts (
  handle TEXT PRIMARY KEY,
  call TEXT NOT NULL,
  caller TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  digest TEXT NOT NULL,
  body BYTEA NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION
);
CREATE TABLE deliveries (
  approval TEXT NOT NULL,
  channel TEXT NOT NULL,
  message TEXT,
  state TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (approval, channel)
);
CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_hash TEXT,
  definition_hash TEXT,
  session TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION,
  created_by TEXT NOT NULL,
  approval TEXT,
  revoked_at DOUBLE PRECISION,
  used INTEGER NOT NULL DEFAULT 0,
  body TEXT NOT NULL
);
INSERT INTO "grants" VALUES('01a1e6f8932b76a089bfa7943574062d','anna','lab:act#c5e43f1c','82f32be175908e297bc2622ec2ba1f71c7ba3226fa9298b076c317075ece6afa','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf',NULL,1000.0,NULL,'operator','01a1e6f89315738e89f644d517b1fe65',NULL,0,'{"signature":"lab__act(deep={\"list\":%5B1%2Cnull%2C\"ä\"%5D}, n=2)"}');
CREATE TABLE idempotency (
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  key TEXT NOT NULL,
  call TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  expires_at DOUBLE PRECISION,
  PRIMARY KEY (caller, tool, key)
);
INSERT INTO "idempotency" VALUES('anna','lab:act#c5e43f1c','key-1','00000000000000000000000000000001','ad391fb150f8ea5f6203f975460589e3cd521e006528b58253dba1e724b98d90',87400.0);
INSERT INTO "idempotency" VALUES('anna','lab:act#c5e43f1c','key-2','00000000000000000000000000000002','82f32be175908e297bc2622ec2ba1f71c7ba3226fa9298b076c317075ece6afa',87400.0);
INSERT INTO "idempotency" VALUES('anna','lab:act#c5e43f1c','key-3','00000000000000000000000000000003','1fa671f16f214cdc5f8a6fde9d40960c09448d7c3d48e53e8098c392dc7ca579',87400.0);
CREATE TABLE kv (
  name TEXT PRIMARY KEY,
  value TEXT
);
CREATE TABLE peer_certificates (
  serial TEXT PRIMARY KEY,
  peer TEXT NOT NULL,
  fingerprint TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  state TEXT NOT NULL,
  issued_at DOUBLE PRECISION NOT NULL,
  not_after DOUBLE PRECISION NOT NULL,
  reason TEXT
);
CREATE TABLE peers (
  name TEXT PRIMARY KEY,
  component_type TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  identity_key TEXT NOT NULL,
  status TEXT NOT NULL,
  paired_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION,
  reason TEXT,
  last_seen DOUBLE PRECISION,
  body TEXT NOT NULL
);
CREATE TABLE pins (
  tool TEXT PRIMARY KEY,
  pin TEXT NOT NULL,
  definition TEXT NOT NULL,
  first_seen DOUBLE PRECISION NOT NULL,
  changed_at DOUBLE PRECISION,
  pending TEXT
);
CREATE TABLE record (
  call TEXT NOT NULL,
  step INTEGER NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  state TEXT NOT NULL,
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  body TEXT NOT NULL,
  chain TEXT NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (chain, seq),
  UNIQUE (call, step)
);
INSERT INTO "record" VALUES('00000000000000000000000000000001',1,1000.0,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e6f8930a71258c0b8f82fb11b256","arguments":{"deep":{"list":[1,null,"ä"]},"n":1},"arguments_hash":"ad391fb150f8ea5f6203f975460589e3cd521e006528b58253dba1e724b98d90","client_id":"c1","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1900.0,"idempotency_key":"key-1","reason":"rule ask *","received":1000.0,"rule":"ask *","session":"run-1","signature":"lab__act(deep={\"list\":%5B1%2Cnull%2C\"ä\"%5D}, n=1)","source":"lab","surface":"websocket","trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","where":"","wire":"lab__act"}','home',1,'153953fde9f13b9ffc994533410b79f14b12a618480e4d8f58f872efa7e5ce85');
INSERT INTO "record" VALUES('00000000000000000000000000000002',1,1000.0,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e6f89315738e89f644d517b1fe65","arguments":{"deep":{"list":[1,null,"ä"]},"n":2},"arguments_hash":"82f32be175908e297bc2622ec2ba1f71c7ba3226fa9298b076c317075ece6afa","client_id":"c2","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1900.0,"idempotency_key":"key-2","reason":"rule ask *","received":1000.0,"rule":"ask *","session":"run-1","signature":"lab__act(deep={\"list\":%5B1%2Cnull%2C\"ä\"%5D}, n=2)","source":"lab","surface":"websocket","trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","where":"","wire":"lab__act"}','home',2,'13d4e333a867e57eff3b806732d7e9d8cfd12c6bc4ede3e4c35e5c427d9676b7');
INSERT INTO "record" VALUES('00000000000000000000000000000003',1,1000.0,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e6f8932078548c81d8575cba10d3","arguments":{"deep":{"list":[1,null,"ä"]},"n":3},"arguments_hash":"1fa671f16f214cdc5f8a6fde9d40960c09448d7c3d48e53e8098c392dc7ca579","client_id":"c3","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1900.0,"idempotency_key":"key-3","reason":"rule ask *","received":1000.0,"rule":"ask *","session":"run-1","signature":"lab__act(deep={\"list\":%5B1%2Cnull%2C\"ä\"%5D}, n=3)","source":"lab","surface":"websocket","trace":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","where":"","wire":"lab__act"}','home',3,'55c6c141517c64b9e7943142ee234bc564b9c03c9e5f44c5eee14081e4be3d73');
INSERT INTO "record" VALUES('00000000000000000000000000000002',2,1000.0,'approved','anna','lab:act#c5e43f1c','{"approval":"01a1e6f89315738e89f644d517b1fe65","by":"operator","channel":"test","lifetime":"always","reason":"fine"}','home',4,'2b1e4812931fa76e76869a8fa10744683054933341a646a6eab0310986eeeadf');
INSERT INTO "record" VALUES('00000000000000000000000000000003',2,1000.0,'denied','anna','lab:act#c5e43f1c','{"approval":"01a1e6f8932078548c81d8575cba10d3","by":"operator","channel":"test","lifetime":"once","reason":"not now"}','home',5,'9eedfcddaba4c5bb2ade07ceb71a2dfdaaceed3c7ae8b8a454e8cda9102fa86f');
CREATE TABLE results (
  call TEXT PRIMARY KEY,
  caller TEXT NOT NULL,
  session TEXT,
  client_id TEXT,
  tool TEXT NOT NULL,
  signature TEXT NOT NULL,
  arguments TEXT NOT NULL,
  state TEXT NOT NULL,
  body BYTEA,
  kind TEXT,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION,
  acknowledged_at DOUBLE PRECISION
);
INSERT INTO "results" VALUES('00000000000000000000000000000003','anna','run-1','"c3"','lab__act','lab__act(deep={"list":%5B1%2Cnull%2C"ä"%5D}, n=3)','{"deep":{"list":[1,null,"ä"]},"n":3}','denied',X'7B22636F6465223A22415050524F56414C5F44454E494544222C226D657373616765223A2244656E69656420627920757365725C6E526561736F6E3A206E6F74206E6F77222C22726574727961626C65223A66616C73657D','error',1000.0,605800.0,NULL);
CREATE TABLE schema_version (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
INSERT INTO "schema_version" VALUES(1,'initial',1.79487641262048721311e+09);
INSERT INTO "schema_version" VALUES(2,'history',1.79487641264716815949e+09);
INSERT INTO "schema_version" VALUES(3,'vault',1.79487641266029214863e+09);
INSERT INTO "schema_version" VALUES(4,'peers',1.79487641266847515108e+09);
CREATE TABLE seals (
  chain TEXT NOT NULL,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL,
  mac TEXT NOT NULL,
  open_from BIGINT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (chain, seq)
);
CREATE TABLE sources (
  key TEXT PRIMARY KEY,
  era TEXT,
  listing TEXT,
  updated_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE tokens (
  name TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION,
  body TEXT
);
CREATE TABLE vault (
  owner TEXT NOT NULL,
  field TEXT NOT NULL,
  key TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  version INTEGER NOT NULL,
  updated_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (owner, field)
);
CREATE TABLE vault_keys (
  slot INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  master TEXT NOT NULL,
  salt TEXT NOT NULL,
  wrapped BYTEA NOT NULL,
  created_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX record_at ON record (at, caller, tool, state);
CREATE UNIQUE INDEX approvals_open ON approvals (caller, tool, arguments_hash) WHERE state = 'pending';
CREATE INDEX approvals_due ON approvals (state, expires_at);
CREATE INDEX grants_caller ON grants (caller, tool);
CREATE INDEX results_caller ON results (caller, acknowledged_at);
CREATE INDEX approvals_asked ON approvals (asked_at);
CREATE INDEX peer_certificates_peer ON peer_certificates (peer, state);
CREATE INDEX peer_certificates_key ON peer_certificates (public_key);
COMMIT;
