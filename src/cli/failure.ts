/** The command was called rightly and could not be carried out; the message says why and what would do. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

/** The command was called wrongly; the message says what would do. */
export class UsageFailure extends Error {
  override readonly name = 'UsageFailure';
}
