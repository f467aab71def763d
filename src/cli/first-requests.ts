import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** The requests that come while a process starts. */
export class FirstRequests implements Disposable {
  readonly #server: Server;
  readonly #open = new Set<ServerResponse>();
  #onNone: (() => void) | undefined;

  /** @param server that does not listen yet */
  constructor(server: Server) {
    this.#server = server;
    server.on('request', this.#add);
  }

  /** Resolves when none of them waits for its answer. */
  async answered(): Promise<void> {
    // Those whose bytes are there come first.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onNone = resolve;
    });
  }

  /** From here on requests are not looked at. */
  [Symbol.dispose](): void {
    this.#server.off('request', this.#add);
  }

  readonly #add = (_: IncomingMessage, response: ServerResponse): void => {
    this.#open.add(response);
    response.once('close', () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.#onNone?.();
    });
  };
}
