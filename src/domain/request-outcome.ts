/** The facts of a finished request, for metrics. */
export interface RequestOutcome {
  /** The route's pattern, such as `/v1/machines/{id}`, or `(none)`. Never a raw path: callers must not create series. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
  readonly tier: string | undefined;
  /** True for a stream, a download and a request that waited for changes. */
  readonly lasts?: boolean | undefined;
}
