/** Where a setting of a source comes from. Pure. */

/** Whence a value comes; `unset` where nothing gives one. */
type Origin =
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'file'; readonly file: string }
  | { readonly from: 'default' }
  | { readonly from: 'unset' };

export type SourceSetting = Origin & {
  /** As the file has it: `url`, `schedule`, `token`, `options.region`, `limits.removedShare`. */
  readonly name: string;
  /** As it may be shown: of what is secret `***`; null where there is none. */
  readonly value: string | null;
};

/** The same in words. */
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
