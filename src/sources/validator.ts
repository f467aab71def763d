/** What an upstream calls the present state of a payload: its ETag, its Last-Modified, or both. */
export interface Validator {
  /** The address that was asked, its query only as a hash. */
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/** The answer to a conditional request for a payload that has not changed. */
export interface Unmodified {
  readonly unmodified: Validator;
  readonly headers: Headers;
}

/** Which payload the rows of a region come from, or those of the whole source where no region is named. */
export type ValidatorItem =
  /**
   * The payload's rows are in this batch. Once they are stored, the payload is read only when it has changed. Not to be
   * yielded for a payload from which other rows follow at a later time.
   */
  | { readonly kind: 'validator'; readonly validator: Validator; readonly regionCode?: string }
  /** The stored rows come from this payload. They stay as they are, and count as seen. */
  | { readonly kind: 'unmodified'; readonly validator: Validator; readonly regionCode?: string };
