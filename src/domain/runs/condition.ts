/** Something that is wrong for as long as it is found again. Alerts open and resolve with it. */
export interface Condition {
  readonly kind: string;
  /** The object that is wrong. Kind and subject together identify an alert. */
  readonly subject: string;
  readonly summary: string;
  readonly details: Readonly<Record<string, unknown>>;
}
