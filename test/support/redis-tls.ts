/** What a Redis of the tests speaks TLS with: a certificate for loopback, of an authority that nobody knows. */
import { readFileSync } from 'node:fs';
import { freePort } from '../../src/processes/port.ts';

const file = (name: string) => new URL(`../fixtures/kubernetes/tls/${name}`, import.meta.url).pathname;

/** The authority's certificate, for NODE_EXTRA_CA_CERTS. */
export const AUTHORITY_FILE = file('ca.crt');

/** For clients of the tests' own. */
export const TRUSTED = { ca: readFileSync(AUTHORITY_FILE) };

/** Its bus is 10,000 ports further. */
const HIGHEST_OF_A_CLUSTER = 55_535;

/** As on the command line of a server that speaks TLS on `port` to clients, replicas, Sentinels and nodes alike. */
export function tlsArgs(port: number): string[] {
  return [
    ...['--tls-port', String(port), '--tls-auth-clients', 'no', '--tls-replication', 'yes'],
    ...['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')],
    ...['--tls-ca-cert-file', AUTHORITY_FILE],
    // The bus of a cluster wants to know who connects.
    ...['--tls-client-cert-file', file('client.crt'), '--tls-client-key-file', file('client.key')],
  ];
}

export async function freeClusterPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (port <= HIGHEST_OF_A_CLUSTER) return port;
  }
}
