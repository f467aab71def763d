/** A setting of one source, and where its value comes from. */
type Origin =
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'file'; readonly file: string }
  | { readonly from: 'default' }
  | { readonly from: 'unset' };

export type SourceSetting = Origin & {
  /** Its name in the file of sources: `url`, `schedule`, `token`, `options.region`, `limits.removedShare`. */
  readonly name: string;
  /** `***` for a secret; null if not set. */
  readonly value: string | null;
};

export function originInWords(setting: SourceSetting): string {
  switch (setting.from) {
    case 'environment':
      return setting.value === null ? `${setting.variable}, which is not set` : setting.variable;
    case 'file':
      return setting.file;
    case 'default':
      return 'default';
    case 'unset':
      return 'not set';
  }
}
