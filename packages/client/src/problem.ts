/** The errors of the client. */

/** The API refused the request. The fields are those of its problem document (RFC 9457). */
export class FleetbookProblem extends Error {
  override readonly name: string = 'FleetbookProblem';
  /** The kind of problem, e.g. `urn:fleetbook:problem:invalid-parameter`; `about:blank` if the status alone describes it. */
  readonly type: string;
  readonly status: number;
  readonly title: string;
  /** The cause and the accepted values. */
  readonly detail: string;
  /** The invalid parameter, if the API names one. */
  readonly parameter: string | undefined;
  /** The scope that the token lacks, if that is the problem. */
  readonly scope: string | undefined;
  /** Seconds until the next attempt, if the API names them. */
  readonly retryAfter: number | undefined;
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;

  constructor({ status, headers }: Response, body: Readonly<Record<string, unknown>>) {
    const text = (name: string) => (typeof body[name] === 'string' ? body[name] : undefined);
    const title = text('title') ?? `Status ${status}`;
    const detail = text('detail') ?? '';
    super(detail === '' ? title : `${title}: ${detail}`);
    this.type = text('type') ?? 'about:blank';
    this.status = status;
    this.title = title;
    this.detail = detail;
    this.parameter = text('parameter');
    this.scope = text('scope');
    this.retryAfter = retryAfter(headers);
    this.requestId = headers.get('x-request-id') ?? text('instance');
  }
}

/** The cursor is too old: the API has deleted changes after it. List everything again, then continue from `next`. */
export class CursorGone extends FleetbookProblem {
  override readonly name = 'CursorGone';
  /** The cursor of the current end of the feed. */
  readonly next: string;

  constructor(response: Response, body: Readonly<Record<string, unknown>>, next: string) {
    super(response, body);
    this.next = next;
  }
}

/** No valid answer arrived in time. `cause` is the error of the last attempt. */
export class FleetbookUnreachable extends Error {
  override readonly name = 'FleetbookUnreachable';
}

/** Reads the problem in an answer with an error status. @throws if the body cannot be read */
export async function problemOf(response: Response): Promise<FleetbookProblem> {
  const body = membersOf(await response.text());
  const { next } = body;
  if (response.status === 410 && typeof next === 'string') return new CursorGone(response, body, next);
  return new FleetbookProblem(response, body);
}

/** Parses the body. Returns no members if a gateway answered with something other than a problem. */
function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? { ...body } : {};
  } catch {
    return {};
  }
}

/** Reads `Retry-After`, in seconds from now. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
