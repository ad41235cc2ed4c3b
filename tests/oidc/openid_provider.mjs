// A certified OpenID provider over real HTTP: discovery, registration, PKCE, userinfo, refresh, logout in both directions.
// It prints its issuer. `/test/person?id=anna&groups=sre,dev&verified=true` says what it tells of somebody; with `gone` it
// gives no more tokens for them, and with `faltering` its user info fails. `/test/identities?seconds=20` says how long its ID tokens last.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const [folder] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/oidc-provider/lib/index.js`).href);
process.removeAllListeners('warning');

const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;
const people = new Map();
let identities = 3600;
const told = (id) => ({ sub: id, email: `${id}@example.test`, email_verified: true, groups: [], ...people.get(id)?.claims });

const provider = new Provider(issuer, {
  findAccount: (_ctx, id) => (people.get(id)?.gone ? undefined : { accountId: id, claims: (use) => (use === 'userinfo' && people.get(id)?.faltering ? Promise.reject(new Error('faltering')) : told(id)) }),
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'email', 'profile'],
  claims: { openid: ['sub', 'sid'], email: ['email', 'email_verified'], profile: ['groups'] },
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
  responseTypes: ['code'],
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  fetch: (url, options) => globalThis.fetch(url, { ...options, dispatcher: undefined }),
  ttl: { AccessToken: 600, RefreshToken: 86400, Session: 3600, Grant: 86400, Interaction: 600, IdToken: () => identities, AuthorizationCode: 60 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    backchannelLogout: { enabled: true },
    rpInitiatedLogout: { enabled: true },
  },
});
provider.on('server_error', (_ctx, error) => process.stderr.write(`${error.stack}\n`));
provider.on('backchannel.error', (_ctx, error) => process.stderr.write(`${error.stack}\n`));
const answer = provider.callback();
server.on('request', (request, response) => {
  const url = new URL(request.url, issuer);
  if (url.pathname === '/test/identities') {
    identities = Number(url.searchParams.get('seconds'));
    return response.end();
  }
  if (url.pathname === '/test/person') {
    const said = url.searchParams;
    people.set(said.get('id'), {
      gone: said.has('gone'),
      faltering: said.has('faltering'),
      claims: { groups: (said.get('groups') ?? '').split(',').filter(Boolean), email_verified: said.get('verified') !== 'false',
                ...(said.has('email') ? { email: said.get('email') } : {}) },
    });
    return response.end();
  }
  return answer(request, response);
});
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
