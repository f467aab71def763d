/** Checks that the compared servers give the same answer. */
import { isDeepStrictEqual } from 'node:util';
import { type Answer, fetchAnswer } from './capture.ts';
import type { Peers } from './peers.ts';
import type { Target } from './targets.ts';

/**
 * The bare server must send the same header fields and bytes, nginx the same bytes, a server with a database the same
 * JSON.
 * @throws Error that names the differing server
 */
export async function checkPeers(
  peers: Peers,
  targets: readonly Target[],
  answers: Readonly<Record<string, Answer>>,
): Promise<void> {
  for (const { id, path, headers, peers: compared } of targets) {
    const wanted = answers[id];
    for (const server of compared) {
      const port = server === 'fleetbook' ? undefined : peers.portOf(server, id);
      if (port === undefined || wanted === undefined) continue;
      const given = await fetchAnswer(port, path, headers);
      const same =
        server === 'bare'
          ? isDeepStrictEqual(given, wanted)
          : given.status === wanted.status &&
            (server === 'nginx' ? given.body.equals(wanted.body) : sameJson(given.body, wanted.body));
      if (!same)
        throw new Error(`${server} gives another answer to ${path} than Fleetbook: ${described(given)}`);
    }
  }
}

function sameJson(one: Buffer, other: Buffer): boolean {
  return isDeepStrictEqual(JSON.parse(one.toString()), JSON.parse(other.toString()));
}

const described = ({ status, headers, body }: Answer): string =>
  `${status} ${JSON.stringify(headers)} ${body.toString('utf8', 0, 500)}`;
