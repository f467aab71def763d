import { integer } from '../../config/setting-values.ts';
import { type SettingDefinitions, setting } from '../../config/settings.ts';

export const EXPORT_SETTINGS = {
  EXPORT_EVERY: setting(
    'seconds from one version of the catalogue files to the next, see docs/exports.md; 0: no files',
    integer(0, 604_800, 'seconds'),
    '900',
  ),
} satisfies SettingDefinitions;
