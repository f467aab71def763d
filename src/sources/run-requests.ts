/** Records the HTTP requests of a run (http/request-log.ts). */
export interface Requests {
  begin(): NotedRequest;
}

export interface NotedRequest {
  /** Begins an attempt: drops status and bytes of an earlier attempt. */
  attempt(): void;
  sentTo(url: URL): void;
  answered(status: number): void;
  /** Counts the bytes of the chunks, and yields them. */
  counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  /** Yields the chunks, and ends the request with them. */
  endingWith(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  /** Only the first call counts. @param error the failure of the request */
  end(error?: unknown): void;
}
