/** Notes the HTTP requests of a run, see http/request-log.ts. */
export interface Requests {
  /** Notes a request whose first attempt is about to be made. */
  begin(): NotedRequest;
}

/** One request, from its first attempt to its end. */
export interface NotedRequest {
  /** Begins an attempt: status and bytes of an earlier one are dropped. */
  attempt(): void;
  sentTo(url: URL): void;
  answered(status: number): void;
  /** The same chunks, counted. */
  counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  /** The same chunks; the request ends with them. */
  endingWith(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  /** Only the first call counts. @param error what the request failed with */
  end(error?: unknown): void;
}
