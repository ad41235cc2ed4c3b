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
INSERT INTO "approvals" VALUES('01a1e77cf82a793083c68690c2c52aad','01a1e77cf82a720b8e26c02550fab7ac','anna',NULL,'lab:act#c5e43f1c','lab__act(code=•••, deep={"door":"back"}, door=front)','397fd59f5d15f1d60d17e7156aff6d79e19ceedcd11a888994d872847861f06d','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','pending',1.79488508932285976407e+09,1.79488598932285976414e+09,NULL,NULL,NULL,NULL,NULL,'{"wire":"lab__act","sentence":"","call":{"tool":"lab:act#c5e43f1c","arguments":{"door":"front","code":"•••","deep":{"door":"back"}},"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":2,"budget":null,"context":[]},"id":"01a1e77cf82a720b8e26c02550fab7ac","surface":"","mode":"full","session":null,"client_id":null,"idempotency_key":null,"timeout":null,"trace":null,"continues":false,"reads":false,"filled":[],"meta":{}},"sealed":"H4XTrOpzCq/3EZbddK/z1CbccQp+FfPBTE7j9YKZ2mUHgn7PGesCKbR+HeLV2lfox4ZiST5RPIUHEw==","secret":["code"],"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf8307fca8e9026ac10e4a027','01a1e77cf8307e828cb0bc172bf65a96','anna',NULL,'lab:act#c5e43f1c','lab__act(code=•••, deep={"door":"back"}, door=front)','48f007c9995b667dbfd30389ebd0c7f6f1c9cbf4c2c6b311d9f8d136569b161a','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','denied',1.79488508932880377767e+09,1.79488598932880377766e+09,1.79488508932980132099e+09,'operator','test','deny','','{"wire":"lab__act","sentence":"","call":{"tool":"lab:act#c5e43f1c","arguments":{"door":"front","code":"•••","deep":{"door":"back"}},"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":2,"budget":null,"context":[]},"id":"01a1e77cf8307e828cb0bc172bf65a96","surface":"","mode":"full","session":null,"client_id":null,"idempotency_key":null,"timeout":null,"trace":null,"continues":false,"reads":false,"filled":[],"meta":{}},"sealed":"utqXIiibPDNg7AV+Wcg6gt6bMUpJPHuctkE+v46olv/Vjt8aiEnH5x6ihaulsB5L0phT/nKQEGtW","secret":["code"],"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf83271cb81871da4fe5864ad','01a1e77cf83272168a9055e9527694fa','anna',NULL,'lab:act#c5e43f1c','lab__act(code=•••, deep={"door":"back"}, door=front)','8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','approved',1.79488508933054256443e+09,1.79488598933054256442e+09,1.79488508933127975468e+09,'anna','cli','always','','{"wire":"lab__act","sentence":"","call":{"tool":"lab:act#c5e43f1c","arguments":{"door":"front","code":"•••","deep":{"door":"back"}},"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":2,"budget":null,"context":[]},"id":"01a1e77cf83272168a9055e9527694fa","surface":"","mode":"full","session":null,"client_id":null,"idempotency_key":null,"timeout":null,"trace":null,"continues":false,"reads":false,"filled":[],"meta":{}},"sealed":"XCaY4llQSayAxfzO1PDK9ioIGCzlwax4j4pgV2JuiFi2NbHakeDY3tVth9xSd/VFmTPkHD9h/01SCg==","secret":["code"],"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
INSERT INTO "approvals" VALUES('01a1e77cf83477808eb5f5cfd76345d1','01a1e77cf8347d0a8b14d3304416c2e5','anna',NULL,'lab:act#c5e43f1c','lab__act(code=•••, deep={"door":"back"}, door=front)','c33cb3edd9d0242e2838870b46bbe4858e4eaf2095e17870a62d8439a1272384','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf','approved',1.79488508933264756203e+09,1.79488598933264756202e+09,1.794885089333486557e+09,'operator','test','once','','{"wire":"lab__act","sentence":"","call":{"tool":"lab:act#c5e43f1c","arguments":{"door":"front","code":"•••","deep":{"door":"back"}},"caller":{"name":"anna","kind":"agent","namespaces":null,"mode":"full","names":"wire","cache_stable":false,"calls_per_minute":0,"max_pending":2,"budget":null,"context":[]},"id":"01a1e77cf8347d0a8b14d3304416c2e5","surface":"","mode":"full","session":null,"client_id":null,"idempotency_key":null,"timeout":null,"trace":null,"continues":false,"reads":false,"filled":[],"meta":{}},"sealed":"TVvj8eDxaJoh5epLHh1BExjYHpJPhxFB0Bwd2ff/lCiAE62zXRTlf0t2nc91a9HkB3jjnDCBx7PzrTo=","secret":["code"],"decision":{"effect":"ask","rule":"ask *","where":"","reason":"rule ask *","said":"","lifetime":null,"approvers":[],"via":"person","grant":null,"near":"","considered":[]}}');
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
INSERT INTO "grants" VALUES('01a1e77cf8337a81818d3cf0e77bb948','anna','lab:act#c5e43f1c','8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394','94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf',NULL,1.79488508933124947552e+09,NULL,'anna','01a1e77cf83271cb81871da4fe5864ad',NULL,0,'{"signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)"}');
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
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
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
CREATE TABLE pictures (
  approval TEXT PRIMARY KEY,
  media_type TEXT NOT NULL,
  body BYTEA NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
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
INSERT INTO "record" VALUES('01a1e77cf8287b778850b7aa5b56b52a',3,1.79488508932089495663e+09,'dispatching','anna','lab:act#c5e43f1c','{"arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"decision":"allow","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","reason":"rule allow *","rule":"allow *","signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',1,'904a45ec4ec1e874de6b6cc278c1038566af5a92ee03c3b6db7c4a3d96051d10');
INSERT INTO "record" VALUES('01a1e77cf8287b778850b7aa5b56b52a',4,1.79488508932160687444e+09,'completed','anna','lab:act#c5e43f1c','{"digest":"ace9288a3ff79a9132b9ddf621bc19354ffb04b3eacb17486ad6dc4d51303961","marks":{"dispatched":1794885089.320895,"received":1794885089.3207417,"replied":1794885089.321593},"size":13}','home',2,'6fc8a8ce3a2c5acaede63bc59a1f323445c709d13e515abeeb57f3847b9c8bb7');
INSERT INTO "record" VALUES('01a1e77cf82a720b8e26c02550fab7ac',1,1.79488508932285976407e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf82a793083c68690c2c52aad","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"397fd59f5d15f1d60d17e7156aff6d79e19ceedcd11a888994d872847861f06d","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885989.3228598,"reason":"rule ask *","received":1794885089.3227437,"rule":"ask *","signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',3,'90814ddfddcf742984103352aaa66ae4d40fc52c5f02ab0bad6749416a22972f');
INSERT INTO "record" VALUES('01a1e77cf8307e828cb0bc172bf65a96',1,1.79488508932880377767e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf8307fca8e9026ac10e4a027","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"48f007c9995b667dbfd30389ebd0c7f6f1c9cbf4c2c6b311d9f8d136569b161a","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885989.3288038,"reason":"rule ask *","received":1794885089.3284976,"rule":"ask *","signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',4,'d4969b521f97f8606e5fd66870b9e7f733df829f60749cf8600103dd9302afe0');
INSERT INTO "record" VALUES('01a1e77cf8307e828cb0bc172bf65a96',2,1.79488508932979321484e+09,'denied','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf8307fca8e9026ac10e4a027","by":"operator","channel":"test","lifetime":"once","reason":""}','home',5,'c66ffe44ac3211e412966f72e196decdf0550bd87124afdac35ed55045a3c16b');
INSERT INTO "record" VALUES('01a1e77cf83272168a9055e9527694fa',1,1.79488508933054256443e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf83271cb81871da4fe5864ad","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"8ef667b4e3c3c14662c59380c11629276f7ffa641388b5fe0bbdd215e2160394","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885989.3305426,"reason":"rule ask *","received":1794885089.3304594,"rule":"ask *","signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',6,'c613daa01d95a1aab9fc29dbe1e856074a1137b3a71c1e442a74a3e5d93a821a');
INSERT INTO "record" VALUES('01a1e77cf83272168a9055e9527694fa',2,1.79488508933127260212e+09,'approved','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf83271cb81871da4fe5864ad","by":"anna","channel":"cli","lifetime":"always","reason":""}','home',7,'8c1b2a081e58f4a8b28657f9925e939d047c1066bd14cfa93ada4e9100b5662b');
INSERT INTO "record" VALUES('01a1e77cf83272168a9055e9527694fa',3,1.79488508933190441126e+09,'dispatching','anna','lab:act#c5e43f1c','{"approved":true}','home',8,'9eacb4e379ac3f2ff16371c96bdb8013d02b7dea7ca9ccfd7b5da37b72354213');
INSERT INTO "record" VALUES('01a1e77cf83272168a9055e9527694fa',4,1.79488508933247327805e+09,'completed','anna','lab:act#c5e43f1c','{"digest":"ace9288a3ff79a9132b9ddf621bc19354ffb04b3eacb17486ad6dc4d51303961","marks":{"dispatched":1794885089.3319044,"received":1794885089.3305426,"replied":1794885089.332464},"size":13}','home',9,'d63034858bbb56a89243be92997a0214e925651d3ff6d197c8654844f303cea6');
INSERT INTO "record" VALUES('01a1e77cf8347d0a8b14d3304416c2e5',1,1.79488508933264756203e+09,'pending','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf83477808eb5f5cfd76345d1","arguments":{"code":"•••","deep":{"door":"back"},"door":"front"},"arguments_hash":"c33cb3edd9d0242e2838870b46bbe4858e4eaf2095e17870a62d8439a1272384","decision":"ask","definition_hash":"94a4f8345e4ad5333de893d7e93e53bd7ceb8da19c7bd998e3b19046980359bf","expires_at":1794885989.3326476,"reason":"rule ask *","received":1794885089.332582,"rule":"ask *","signature":"lab__act(code=•••, deep={\"door\":\"back\"}, door=front)","source":"lab","surface":"","where":"","wire":"lab__act"}','home',10,'4ce4a4b92e460c73de350bb612116d73f4e803ff0ce11b0e765453160447d9af');
INSERT INTO "record" VALUES('01a1e77cf8347d0a8b14d3304416c2e5',2,1.7948850893334777355e+09,'approved','anna','lab:act#c5e43f1c','{"approval":"01a1e77cf83477808eb5f5cfd76345d1","by":"operator","channel":"test","lifetime":"once","reason":""}','home',11,'f63f0adca51867dbcb1bc225a328d149e58eb8a8d65b88ec2a6bea545fa18d7e');
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
INSERT INTO "results" VALUES('01a1e77cf8307e828cb0bc172bf65a96','anna',NULL,'null','lab__act','lab__act(code=•••, deep={"door":"back"}, door=front)','{"code":"•••","deep":{"door":"back"},"door":"front"}','denied',X'7B22636F6465223A22415050524F56414C5F44454E494544222C226D657373616765223A2244656E6965642062792075736572222C22726574727961626C65223A66616C73657D','error',1.79488508932977366451e+09,1.79548988932977366447e+09,NULL);
INSERT INTO "results" VALUES('01a1e77cf83272168a9055e9527694fa','anna',NULL,'null','lab__act','lab__act(code=•••, deep={"door":"back"}, door=front)','{"code":"•••","deep":{"door":"back"},"door":"front"}','completed',X'7B22646F6E65223A747275657D','json',1.79488508933247327805e+09,1.795489889332473278e+09,NULL);
CREATE TABLE schema_version (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
INSERT INTO "schema_version" VALUES(1,'initial',1.79488508931545734403e+09);
INSERT INTO "schema_version" VALUES(2,'history',1.79488508931664013865e+09);
INSERT INTO "schema_version" VALUES(3,'vault',1.79488508931719517713e+09);
INSERT INTO "schema_version" VALUES(4,'peers',1.79488508931773495672e+09);
INSERT INTO "schema_version" VALUES(5,'leases',1.79488508931825923916e+09);
INSERT INTO "schema_version" VALUES(6,'pictures',1.79488508931871056564e+09);
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
