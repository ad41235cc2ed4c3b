// A certified authorization server over real HTTP: discovery, registration, PKCE, rotation with reuse detection, the
// device flow, revocation, resource indicators. It prints its issuer; `/test/count?path=/token` tells how often it was asked.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { pathToFileURL } from 'node:url';

const [folder, seconds = '3600', port = '0', cert, key] = process.argv.slice(2);
const { default: Provider, errors } = await import(pathToFileURL(`${folder}/oidc-provider/lib/index.js`).href);
process.removeAllListeners('warning');

const server = cert ? createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }) : createServer();
await new Promise((ready) => server.listen(Number(port), '127.0.0.1', ready));
const issuer = `http${cert ? 's' : ''}://127.0.0.1:${server.address().port}`;
let lifetime = Number(seconds);

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'machine', client_secret: 'a-secret-of-the-machine-client', grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [] },
    { client_id: 'device', token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'] },
    { client_id: 'exchanger', client_secret: 'a-secret-of-the-exchanging-client', redirect_uris: [], response_types: [],
      grant_types: ['urn:ietf:params:oauth:grant-type:token-exchange'] },
  ],
  clientBasedCORS: () => false,
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.test` }) }),
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'email', 'mcp:read', 'mcp:write'],
  claims: { openid: ['sub'], email: ['email'] },
  responseTypes: ['code'],
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: () => lifetime, ClientCredentials: () => lifetime, RefreshToken: 86400, Session: 3600, Grant: 86400,
         Interaction: 3600, DeviceCode: 600, IdToken: 3600, AuthorizationCode: 60 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'mcp:read mcp:write', audience: resource, accessTokenTTL: lifetime, accessTokenFormat: 'opaque',
      }),
    },
  },
});
// RFC 8693, which the provider leaves to whoever uses it: a good token of its own for another of the same account.
provider.registerGrantType('urn:ietf:params:oauth:grant-type:token-exchange', async (ctx) => {
  const { subject_token: subject, subject_token_type: type, requested_token_type: wanted } = ctx.oidc.params;
  const known = await provider.AccessToken.find(subject);
  if (!known || type !== 'urn:ietf:params:oauth:token-type:jwt' || !wanted.endsWith(':access_token')) {
    throw new errors.InvalidGrant('this subject is not known here');
  }
  const token = new provider.AccessToken({ accountId: known.accountId, client: ctx.oidc.client, grantId: known.grantId });
  ctx.body = { access_token: await token.save(), issued_token_type: wanted, token_type: 'Bearer', expires_in: lifetime };
}, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'], ['resource']);
provider.on('server_error', (_ctx, error) => process.stderr.write(`${error.stack}\n`));
const answer = provider.callback();
const counts = new Map();
const given = new Set();
provider.on('grant.success', (ctx) => ctx.oidc.entities.Grant && given.add(ctx.oidc.entities.Grant.jti));

// What a resource server asks: is this token good, and for whom? Answered from the provider's own store.
async function isGood(token) {
  const kept = await provider.AccessToken.find(token) ?? await provider.ClientCredentials.find(token);
  return kept && kept.isValid ? { active: true, scope: kept.scope, aud: kept.aud, sub: kept.accountId ?? null } : { active: false };
}

server.on('request', async (request, response) => {
  const path = new URL(request.url, issuer).pathname;
  if (path === '/test/count') {
    return response.end(String(counts.get(new URL(request.url, issuer).searchParams.get('path')) ?? 0));
  }
  if (path === '/test/lifetime') { // of the tokens that are given from now on
    lifetime = Number(new URL(request.url, issuer).searchParams.get('seconds'));
    return response.end();
  }
  if (path === '/test/forget') { // every grant that a person gave is taken back
    const grants = [...given];
    given.clear();
    for (const id of grants) {
      await Promise.all(['AccessToken', 'RefreshToken'].map((kind) => provider[kind].revokeByGrantId(id)));
    }
    return response.end();
  }
  if (path === '/test/token') {
    const found = await isGood(new URL(request.url, issuer).searchParams.get('token'));
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify(found));
  }
  counts.set(path, (counts.get(path) ?? 0) + 1);
  return answer(request, response);
});
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
