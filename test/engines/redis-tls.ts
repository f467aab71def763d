/** TLS files of a test's Redis: a certificate for loopback, signed by a private authority. */
import { readFileSync } from 'node:fs';
import { freePort } from '../../src/processes/port.ts';

const file = (name: string) => new URL(`../fixtures/kubernetes/tls/${name}`, import.meta.url).pathname;

/** The authority's certificate, for NODE_EXTRA_CA_CERTS. */
export const AUTHORITY_FILE = file('ca.crt');

/** For direct connections of the tests. */
export const TRUSTED = { ca: readFileSync(AUTHORITY_FILE) };

/** The bus port is 10,000 higher. */
const HIGHEST_OF_A_CLUSTER = 55_535;

/** Command line of a server that uses TLS on `port` for clients, replicas, Sentinels and nodes. */
export function tlsArgs(port: number): string[] {
  return [
    ...['--tls-port', String(port), '--tls-auth-clients', 'no', '--tls-replication', 'yes'],
    ...['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')],
    ...['--tls-ca-cert-file', AUTHORITY_FILE],
    // A cluster's bus requires client certificates.
    ...['--tls-client-cert-file', file('client.crt'), '--tls-client-key-file', file('client.key')],
  ];
}

export async function freeClusterPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (port <= HIGHEST_OF_A_CLUSTER) return port;
  }
}
