/** IPC messages between a process that starts others (supervisor.ts) and those it starts. */

/** For the process that started this one, e.g. the port that it listens on. No secrets. */
export type ReadyDetails = Readonly<Record<string, string | number>>;

/** What a process can be asked for. */
export type Asked = 'metrics';

type Message =
  | { readonly fleetbook: 'ready'; readonly details: ReadyDetails }
  | { readonly fleetbook: 'failure'; readonly why: string }
  | { readonly fleetbook: 'question'; readonly id: number; readonly about: Asked }
  | { readonly fleetbook: 'answer'; readonly id: number; readonly answer: unknown };

/** Undefined for a message of somebody else, e.g. node:cluster's own. Both ends are of one release. */
export function messageOf(sent: unknown): Message | undefined {
  return typeof sent === 'object' && sent !== null && 'fleetbook' in sent ? (sent as Message) : undefined;
}

/** Resolves when it is sent, or when there is nobody to send it to. */
function send(message: Message): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    // A parent that ends at this moment is the business of `whenParentIsGone`.
    else process.send(message, undefined, undefined, () => resolve());
  });
}

/** Tells the process that started this one that it does its work now. Does nothing when started by hand. */
export function reportReady(details: ReadyDetails = {}): void {
  void send({ fleetbook: 'ready', details });
}

/**
 * Tells the process that started this one why this one ends before it is ready, where trying again is in vain, so
 * that it is said once however many were started. `why` names the setting and what would do. Resolves when it is sent.
 */
export function reportFailure(why: string): Promise<void> {
  return send({ fleetbook: 'failure', why });
}

/**
 * Calls `stop` once when the process that started this one has ended, for whatever reason, also when it has already.
 * Never when started by hand. The channel by itself does not keep this process alive.
 */
export function whenParentIsGone(stop: () => void): void {
  if (process.send === undefined) return;
  if (process.connected) {
    process.once('disconnect', stop);
    process.channel?.unref();
  } else {
    stop();
  }
}

/** Answers what the process that started this one asks about. Does nothing when started by hand. */
export function answerParent(about: Asked, answer: () => Promise<unknown>): void {
  process.on('message', (sent) => {
    const message = messageOf(sent);
    if (message?.fleetbook !== 'question' || message.about !== about) return;
    void answer().then((found) => send({ fleetbook: 'answer', id: message.id, answer: found }));
  });
  // Listening to messages must not keep this process alive.
  process.channel?.unref();
}
