/** The child's side of processes.ts: what a process that `fleetbook up` started says to it, and how it learns of its end. */

/** For whoever started it, e.g. the port that it listens on. No secrets. */
export type ReadyDetails = Readonly<Record<string, string | number>>;

interface ReadyMessage {
  readonly fleetbook: 'ready';
  readonly details: ReadyDetails;
}

/** Tells the process that started this one that it does its work now. Does nothing when started by hand. */
export function reportReady(details: ReadyDetails = {}): void {
  const message: ReadyMessage = { fleetbook: 'ready', details };
  // A parent that goes away in this very moment is whenParentIsGone's business.
  process.send?.(message, undefined, undefined, () => {});
}

interface FailureMessage {
  readonly fleetbook: 'failure';
  readonly why: string;
}

/**
 * Tells the process that started this one why this one ends before it is ready, where trying again is in vain, so
 * that it is said once however many were started. `why` names the setting and what would do. Resolves when it is sent.
 */
export function reportFailure(why: string): Promise<void> {
  const message: FailureMessage = { fleetbook: 'failure', why };
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
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

interface Question {
  readonly fleetbook: 'question';
  readonly id: number;
  readonly about: string;
}

interface AnswerMessage {
  readonly fleetbook: 'answer';
  readonly id: number;
  readonly answer: unknown;
}

/** Answers what the process that started this one asks about. Does nothing when started by hand. */
export function answerParent(about: string, answer: () => Promise<unknown>): void {
  process.on('message', (message) => {
    if (!isQuestion(message) || message.about !== about) return;
    void answer().then((found) => {
      const reply: AnswerMessage = { fleetbook: 'answer', id: message.id, answer: found };
      process.send?.(reply, undefined, undefined, () => {});
    });
  });
  // Listening to messages must not keep this process alive.
  process.channel?.unref();
}

function isQuestion(message: unknown): message is Question {
  return (
    typeof message === 'object' &&
    message !== null &&
    'fleetbook' in message &&
    message.fleetbook === 'question'
  );
}

/** For the parent's side. */
export function isAnswerMessage(message: unknown): message is AnswerMessage {
  return (
    typeof message === 'object' &&
    message !== null &&
    'fleetbook' in message &&
    message.fleetbook === 'answer'
  );
}

/** For the parent's side. */
export function isReadyMessage(message: unknown): message is ReadyMessage {
  return (
    typeof message === 'object' && message !== null && 'fleetbook' in message && message.fleetbook === 'ready'
  );
}

/** For the parent's side. */
export function isFailureMessage(message: unknown): message is FailureMessage {
  return (
    typeof message === 'object' &&
    message !== null &&
    'fleetbook' in message &&
    message.fleetbook === 'failure'
  );
}
