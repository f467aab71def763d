/** An upstream's mark of a payload's state: its ETag, its Last-Modified, or both. */
export interface Validator {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/** The answer to a conditional request for an unchanged payload. */
export interface Unmodified {
  readonly unmodified: Validator;
  readonly headers: Headers;
}

/** The payload of the rows of a region; without a region, of the whole source. */
export type ValidatorItem =
  /**
   * The payload's rows are in this batch. After they are stored, the payload is read only if it has changed. An adapter
   * does not yield this for a payload that states other rows at a later time.
   */
  | { readonly kind: 'validator'; readonly validator: Validator; readonly regionCode?: string }
  /** The stored rows come from this payload. They do not change, and count as seen. */
  | { readonly kind: 'unmodified'; readonly validator: Validator; readonly regionCode?: string };
