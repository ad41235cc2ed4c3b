// A certified authorization server over real HTTP: discovery, registration, PKCE, rotation with reuse detection, the
// device flow, revocation, resource indicators. It prints its issuer; `/test/count?path=/token` tells how often it was asked.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [folder, seconds = '3600', port = '0'] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/oidc-provider/lib/index.js`).href);
process.removeAllListeners('warning');

const server = createServer();
await new Promise((ready) => server.listen(Number(port), '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const lifetime = Number(seconds);

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'machine', client_secret: 'a-secret-of-the-machine-client', grant_types: ['client_credentials'],
      redirect_uris: [], response_types: [] },
    { client_id: 'device', token_endpoint_auth_method: 'none', redirect_uris: [], response_types: [],
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'] },
  ],
  clientBasedCORS: () => false,
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.test` }) }),
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'email', 'mcp:read', 'mcp:write'],
  claims: { openid: ['sub'], email: ['email'] },
  responseTypes: ['code'],
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: lifetime, ClientCredentials: lifetime, RefreshToken: 86400, Session: 3600, Grant: 86400,
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
provider.on('server_error', (_ctx, error) => process.stderr.write(`${error.stack}\n`));
const answer = provider.callback();
const counts = new Map();

// What a resource server asks: is this token good, and for whom? Answered from the provider's own store.
async function isGood(token) {
  const kept = await provider.AccessToken.find(token) ?? await provider.ClientCredentials.find(token);
  return kept && kept.isValid ? { active: true, scope: kept.scope, aud: kept.aud } : { active: false };
}

server.on('request', async (request, response) => {
  const path = new URL(request.url, issuer).pathname;
  if (path === '/test/count') {
    return response.end(String(counts.get(new URL(request.url, issuer).searchParams.get('path')) ?? 0));
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
