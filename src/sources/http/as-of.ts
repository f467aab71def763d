import { utcMicroseconds } from '../schema/instant.ts';
import { SourceError } from '../source.ts';

const AS_OF = 'fleetbook-as-of';

/**
 * Returns the freshness in another Fleetbook's answer, RFC 3339: that instance read its sources earlier.
 * @throws SourceError if the answer does not state it
 */
export function asOfIn(headers: Headers, path: string): string {
  const given = headers.get(AS_OF);
  const time = given === null ? undefined : utcMicroseconds(given);
  if (time !== undefined) return `${time}Z`;
  if (given === null) {
    throw new SourceError(
      'retry',
      `${path} answers without Fleetbook-As-Of, so the age of its data is unknown; the other instance has not read its sources yet, or a gateway in between drops the header`,
    );
  }
  throw new SourceError(
    'invalid',
    `${path}: Fleetbook-As-Of must be an instant such as 2026-01-02T03:04:05Z; it is ${JSON.stringify(given.slice(0, 60))}`,
  );
}
