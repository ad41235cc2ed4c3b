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
INSERT INTO "approvals" VALUES('01a1e77cf64b70c18a56caa16d970462','01a1e77cf64b7705847e99c5ddda91dd','anna',NULL,'lab:act#c5e43f1c','lab__act(code=pending-secret-4711, deep={"door":"back"}, door=front)','397fd59f5d15f1d60d17e7156aff6d79e19ceedcd11a888994d872847861f06d','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','pending',1.79488508884371256828e+09,1.79488598884371256827e+09,NULL,NULL,NULL,NULL,NULL,'{"wire":"lab__act","arguments":{"door":"front","code":"pending-secret-4711","deep":{"door":"back"}},"surface":"","mode":"full","sentence":"","secret":["code"],"client_id":null,"idempotency_key":null,"timeout":null,"meta":{},"trace":null,"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":60,"max_pending":2,"budget":null},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf64c70c887f69fe117dc0a62','01a1e77cf64c7798807aeffdfe0c1147','anna',NULL,'lab:act#c5e43f1c','lab__act(code=denied-secret-4712, deep={"door":"back"}, door=front)','48f007c9995b667dbfd30389ebd0c7f6f1c9cbf4c2c6b311d9f8d136569b161a','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','denied',1.79488508884479236599e+09,1.79488598884479236598e+09,1.79488508884560513494e+09,'operator','test','deny','','{"wire":"lab__act","arguments":{"door":"front","code":"denied-secret-4712","deep":{"door":"back"}},"surface":"","mode":"full","sentence":"","secret":["code"],"client_id":null,"idempotency_key":null,"timeout":null,"meta":{},"trace":null,"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":60,"max_pending":2,"budget":null},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf64e7ef58be0b79cdfe567b0','01a1e77cf64e791f83380d67c3480617','anna',NULL,'lab:act#c5e43f1c','lab__act(code=granted-secret-4713, deep={"door":"back"}, door=front)','8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','approved',1.79488508884629392628e+09,1.79488598884629392627e+09,1.79488508884692239764e+09,'anna','cli','always','','{"wire":"lab__act","arguments":{"door":"front","code":"granted-secret-4713","deep":{"door":"back"}},"surface":"","mode":"full","sentence":"","secret":["code"],"client_id":null,"idempotency_key":null,"timeout":null,"meta":{},"trace":null,"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":60,"max_pending":2,"budget":null},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf650731f82020799c3ea1bb3','01a1e77cf65074b8884f549545fdf451','anna',NULL,'lab:act#c5e43f1c','lab__act(code=approved-secret-4714, deep={"door":"back"}, door=front)','c33cb3edd9d0242e2838870b46bbe4858e4eaf2095e17870a62d8439a1272384','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','approved',1.79488508884810972219e+09,1.79488598884810972213e+09,1.7948850888488583565e+09,'operator','test','once','','{"wire":"lab__act","arguments":{"door":"front","code":"approved-secret-4714","deep":{"door":"back"}},"surface":"","mode":"full","sentence":"","secret":["code"],"client_id":null,"idempotency_key":null,"timeout":null,"meta":{},"trace":null,"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":60,"max_pending":2,"budget":null},"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
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
INSERT INTO "grants" VALUES('01a1e77cf64e75198f804d6138c11d0b','anna','lab:act#c5e43f1c','8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf',NULL,1.79488508884689617153e+09,NULL,'anna','01a1e77cf64e7ef58be0b79cdfe567b0',NULL,0,'{"signature":"lab__act(code=granted-secret-4713, deep={\"door\":\"back\"}, door=front)"}');
CREATE TABLE idempotency (
  caller TEXT NOT NULL,
  tool TEXT NOT NULL,
  key TEXT NOT NULL,
  call TEXT NOT NULL,
  arguments_hash TEXT NOT NULL,
  expires_at DOUBLE PRECISION,
  PRIMARY KEY (caller, tool, key)
);
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
INSERT INTO "record" VALUES('01a1e77cf649793b8cacb3b79a92f6af',3,1.794885088841953516e+09,'dispatching','anna','lab:act#c5e43f1c','{"arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"decision":"allow","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","reason":"rule allow *","rule":"allow *","signature":"lab__act(code=allowed-secret-0815, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',1,'97c823d8178cd8ba2dd8bdecf658c1737e19bf306d96c4d8046db6f6f9bfb65e');
INSERT INTO "record" VALUES('01a1e77cf649793b8cacb3b79a92f6af',4,1.79488508884259343151e+09,'completed','anna','lab:act#c5e43f1c','{"digest":"ace9288a3ff79a9132b9ddf621bc19354ffb04b3eacb17486ad6dc4d51303961","marks":{"dispatched":1794885088.8419535,"received":1794885088.841814,"replied":1794885088.842582},"size":13}','home',2,'764ea57f1b4ea8da4e956e70a0ae70b6c3de1dde736b8576d190c0dfc528f6ba');
INSERT INTO "record" VALUES('01a1e77cf64b7705847e99c5ddda91dd',1,1.79488508884371256828e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf64b70c18a56caa16d970462","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"397fd59f5d15f1d60d17e7156aff6d79e19ceedcd11a888994d872847861f06d","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885988.8437126,"reason":"rule ask *","received":1794885088.8436117,"rule":"ask *","signature":"lab__act(code=pending-secret-4711, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',3,'eda2409e0c24427d88b94b8efd2b8ed4b7395693f104acee530f474252152286');
INSERT INTO "record" VALUES('01a1e77cf64c7798807aeffdfe0c1147',1,1.79488508884479236599e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf64c70c887f69fe117dc0a62","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"48f007c9995b667dbfd30389ebd0c7f6f1c9cbf4c2c6b311d9f8d136569b161a","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885988.8447924,"reason":"rule ask *","received":1794885088.844716,"rule":"ask *","signature":"lab__act(code=denied-secret-4712, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',4,'5bcfa563447c045e9a2bfd42e331c0b56c6dc346402aefa72919eac932c55bee');
INSERT INTO "record" VALUES('01a1e77cf64c7798807aeffdfe0c1147',2,1.79488508884559631352e+09,'denied','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf64c70c887f69fe117dc0a62","by":"operator","channel":"test","lifetime":"once","reason":""}','home',5,'e13e6dd794feef2aeb44b670a232ab31913a881d5d364e0babae0d7158e768ee');
INSERT INTO "record" VALUES('01a1e77cf64e791f83380d67c3480617',1,1.79488508884629392628e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf64e7ef58be0b79cdfe567b0","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885988.846294,"reason":"rule ask *","received":1794885088.8462234,"rule":"ask *","signature":"lab__act(code=granted-secret-4713, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',6,'b6f07a467825fe81552cd573a90d9d0d44e05c2467511657335c7415a778a2b5');
INSERT INTO "record" VALUES('01a1e77cf64e791f83380d67c3480617',2,1.79488508884691572186e+09,'approved','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf64e7ef58be0b79cdfe567b0","by":"anna","channel":"cli","lifetime":"always","reason":""}','home',7,'a5d613255eab8be7ed9884cd40703ba425047d4ea2c38fb996e6dd2c33e533f4');
INSERT INTO "record" VALUES('01a1e77cf64e791f83380d67c3480617',3,1.79488508884746718408e+09,'dispatching','anna','lab:act#c5e43f1c','{"approved":true}','home',8,'c95a52cb9abaa6bd94b166ad79d3d4baf8a31abd789cc364397e5ba6bcc3e06f');
INSERT INTO "record" VALUES('01a1e77cf64e791f83380d67c3480617',4,1.79488508884790825843e+09,'completed','anna','lab:act#c5e43f1c','{"digest":"ace9288a3ff79a9132b9ddf621bc19354ffb04b3eacb17486ad6dc4d51303961","marks":{"dispatched":1794885088.8474672,"received":1794885088.846294,"replied":1794885088.8479004},"size":13}','home',9,'f5ecf50c5b369c9e4b730047c9b9862b55558cfd9b52dc00f70190e068b3fe57');
INSERT INTO "record" VALUES('01a1e77cf65074b8884f549545fdf451',1,1.79488508884810972219e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf650731f82020799c3ea1bb3","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"c33cb3edd9d0242e2838870b46bbe4858e4eaf2095e17870a62d8439a1272384","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885988.8481097,"reason":"rule ask *","received":1794885088.8480499,"rule":"ask *","signature":"lab__act(code=approved-secret-4714, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',10,'b0b6a9fd821f4a1ac7e68a543e25b78d4ef182cbb89651f0826f7212fab48b6f');
INSERT INTO "record" VALUES('01a1e77cf65074b8884f549545fdf451',2,1.79488508884885048866e+09,'approved','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf650731f82020799c3ea1bb3","by":"operator","channel":"test","lifetime":"once","reason":""}','home',11,'9ebb5595ceb40eb5ab9be386efe1dfa630c9999f061ff235b63fa673caae404b');
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
INSERT INTO "results" VALUES('01a1e77cf64c7798807aeffdfe0c1147','anna',NULL,'null','lab__act','lab__act(code=denied-secret-4712, deep={"door":"back"}, door=front)','{"code":"•••","deep":{"door":"back"},"door":"front"}','denied',X'7B22636F6465223A22415050524F56414C5F44454E494544222C226D657373616765223A2244656E6965642062792075736572222C22726574727961626C65223A66616C73657D','error',1.79488508884557485577e+09,1.79548988884557485581e+09,NULL);
INSERT INTO "results" VALUES('01a1e77cf64e791f83380d67c3480617','anna',NULL,'null','lab__act','lab__act(code=granted-secret-4713, deep={"door":"back"}, door=front)','{"code":"•••","deep":{"door":"back"},"door":"front"}','completed',X'7B22646F6E65223A747275657D','json',1.79488508884790825843e+09,1.79548988884790825838e+09,NULL);
CREATE TABLE schema_version (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
INSERT INTO "schema_version" VALUES(1,'initial',1.79488508883683800694e+09);
INSERT INTO "schema_version" VALUES(2,'history',1.79488508883788871767e+09);
INSERT INTO "schema_version" VALUES(3,'vault',1.79488508883846139912e+09);
INSERT INTO "schema_version" VALUES(4,'peers',1.79488508883896350862e+09);
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
