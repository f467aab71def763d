/** IPC messages between a parent process (supervisor.ts) and its children. */

/** Details for the parent, e.g. the port. No secrets. */
export type ReadyDetails = Readonly<Record<string, string | number>>;

type Message =
  | { readonly fleetbook: 'ready'; readonly details: ReadyDetails }
  | { readonly fleetbook: 'failure'; readonly why: string }
  | { readonly fleetbook: 'request'; readonly id: number }
  | { readonly fleetbook: 'answer'; readonly id: number; readonly answer: unknown };

/** Returns a message of Fleetbook; undefined for others, e.g. of node:cluster. Both ends have the same release. */
export function messageOf(sent: unknown): Message | undefined {
  return typeof sent === 'object' && sent !== null && 'fleetbook' in sent ? (sent as Message) : undefined;
}

/** Resolves after the message is sent, or at once without a parent. */
function send(message: Message): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    // `onParentExit` handles a parent that ends now.
    else process.send(message, undefined, undefined, () => resolve());
  });
}

export function reportReady(details: ReadyDetails = {}): void {
  void send({ fleetbook: 'ready', details });
}

/** Reports a failed start that another attempt would repeat. @param why names the setting and the remedy */
export function reportFailure(why: string): Promise<void> {
  return send({ fleetbook: 'failure', why });
}

/** Calls `stop` once after the parent has ended. The channel does not keep this process alive. */
export function onParentExit(stop: () => void): void {
  if (process.send === undefined) return;
  if (process.connected) {
    process.once('disconnect', stop);
    process.channel?.unref();
  } else {
    stop();
  }
}

/** Answers each request of the parent for this process's metrics. */
export function answerParent(metrics: () => Promise<unknown>): void {
  process.on('message', (sent) => {
    const message = messageOf(sent);
    if (message?.fleetbook !== 'request') return;
    void metrics().then((answer) => send({ fleetbook: 'answer', id: message.id, answer }));
  });
  // The listener must not keep this process alive.
  process.channel?.unref();
}
