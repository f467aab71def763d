/** Why a call has no answer. */

/** An answer of the API that says no: RFC 9457. */
export class FleetbookProblem extends Error {
  override readonly name: string = 'FleetbookProblem';
  /** `about:blank` where the status says all, else such as `urn:fleetbook:problem:invalid-parameter`. */
  readonly type: string;
  readonly status: number;
  readonly title: string;
  /** The cause and the accepted values. */
  readonly detail: string;
  /** The parameter that does not do, where one is named. */
  readonly parameter: string | undefined;
  /** The scope that the token lacks, where that is the problem. */
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

/** The place in the feed of changes is gone: list again, then follow from `next`. */
export class CursorGone extends FleetbookProblem {
  override readonly name = 'CursorGone';
  /** A fresh starting point, taken before you list. */
  readonly next: string;

  constructor(response: Response, body: Readonly<Record<string, unknown>>, next: string) {
    super(response, body);
    this.next = next;
  }
}

/** Nothing answered in time, or something that is not Fleetbook; `cause` has what was tried last. */
export class FleetbookUnreachable extends Error {
  override readonly name = 'FleetbookUnreachable';
}

/** Reads the problem of an answer that is no success. @throws what reading its body throws */
export async function problemOf(response: Response): Promise<FleetbookProblem> {
  const body = membersOf(await response.text());
  const { next } = body;
  if (response.status === 410 && typeof next === 'string') return new CursorGone(response, body, next);
  return new FleetbookProblem(response, body);
}

/** A gateway on the way may answer with something else than a problem. */
function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? { ...body } : {};
  } catch {
    return {};
  }
}

/** Seconds; a date counts from now. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
