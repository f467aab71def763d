/** Error messages for the model. Each states the cause and, if possible, the remedy. */
import { FleetbookProblem, FleetbookUnreachable } from '../../client/src/index.ts';

/** An error that the model can fix. The model receives its message. */
export class ToolFailure extends Error {}

/** Returns the message for the model; undefined for an unexpected error. */
export function failureText(error: unknown, url: string): string | undefined {
  if (error instanceof ToolFailure) return error.message;
  if (error instanceof FleetbookUnreachable)
    return `The Fleetbook at ${url} cannot be reached: ${error.message}. Check FLEETBOOK_URL.`;
  if (!(error instanceof FleetbookProblem)) return undefined;
  const detail = error.detail || error.title;
  if (error.status === 401)
    return `Fleetbook does not accept the token: ${detail} Check FLEETBOOK_TOKEN; \`fleetbook token create\` creates a new token.`;
  if (error.status === 403)
    return `${detail} An operator of Fleetbook can create a token with this scope: \`fleetbook token create --scope …\`.`;
  if (error.status === 404) return `Not found: ${detail}`;
  const wait = error.retryAfter === undefined ? '' : ` Try again in ${Math.ceil(error.retryAfter)} seconds.`;
  return `Fleetbook rejects the request (${error.status}): ${detail}${wait}`;
}
