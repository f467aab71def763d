/** What a model is told of a call that failed: what is wrong and what would do, in plain words. */
import { FleetbookProblem, FleetbookUnreachable } from '../../client/src/index.ts';

/** Something that whoever calls the tool can mend: told as it is. */
export class ToolFailure extends Error {}

/** @returns undefined for what nobody expected */
export function failureText(error: unknown, url: string): string | undefined {
  if (error instanceof ToolFailure) return error.message;
  if (error instanceof FleetbookUnreachable)
    return `The Fleetbook at ${url} cannot be reached: ${error.message}. FLEETBOOK_URL says where it is.`;
  if (!(error instanceof FleetbookProblem)) return undefined;
  const said = error.detail || error.title;
  if (error.status === 401)
    return `Fleetbook does not accept the token: ${said} FLEETBOOK_TOKEN holds it; \`fleetbook token create\` makes another.`;
  if (error.status === 403)
    return `${said} Whoever runs Fleetbook can give one that has it: \`fleetbook token create --scope …\`.`;
  if (error.status === 404) return `Not found: ${said}`;
  const wait = error.retryAfter === undefined ? '' : ` Try again in ${Math.ceil(error.retryAfter)} seconds.`;
  return `Fleetbook refuses (${error.status}): ${said}${wait}`;
}
