/** A failure that a person can correct. The command line prints its message without a stack. */
export class PlainFailure extends Error {}
