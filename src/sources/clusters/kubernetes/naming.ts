/** Which labels and annotations of an object, or of the nodes that it asks for, say what. */
export interface Naming {
  /** Its value is the tenant; without it the namespace is. */
  readonly organizationLabel?: string | undefined;
  readonly instanceTypeLabel: string;
  readonly regionLabel: string;
  readonly providerLabel: string;
  readonly creatorLabel: string;
}
