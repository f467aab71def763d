import { driverError, messageOf } from '../src/lib/driver-error.ts';

/** An attempt that is to be repeated after a pause. Its message is that of its cause. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly pauseMs: number;

  constructor(cause: unknown, pauseMs: number) {
    super(messageOf(cause), { cause: driverError(cause) });
    this.pauseMs = pauseMs;
  }
}
