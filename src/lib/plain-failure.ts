/** A failure that an operator can correct. The command line prints its message without a stack. */
export class PlainFailure extends Error {}
