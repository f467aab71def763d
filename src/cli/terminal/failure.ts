import { PlainFailure } from '../../lib/plain-failure.ts';

/** The command was called rightly and could not be carried out; the message says why and what would do. */
export class CommandFailure extends PlainFailure {
  override readonly name = 'CommandFailure';
}

/** The command was called wrongly; the message says what would do. */
export class UsageFailure extends PlainFailure {
  override readonly name = 'UsageFailure';
}
