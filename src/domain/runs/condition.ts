/** A lasting problem. Its alert opens when a check finds it, and resolves when a check no longer does. */
export interface Condition {
  readonly kind: string;
  /** The object that is wrong. Kind and subject together identify an alert. */
  readonly subject: string;
  readonly summary: string;
  readonly details: Readonly<Record<string, unknown>>;
}
