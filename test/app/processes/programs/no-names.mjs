/** Loaded before a program: no name resolves, as without a network. */

import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

dns.lookup = async (name) => {
  throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' });
};
syncBuiltinESMExports();
