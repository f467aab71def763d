import { httpUrl, oneOf, text } from '../../config/setting-values.ts';
import { type SettingDefinitions, secret, setting } from '../../config/settings.ts';

export const ALERT_SETTINGS = {
  ALERT_WEBHOOK_URL: secret('webhook that receives alerts, see docs/notifications.md; unset: none', httpUrl),
  ALERT_WEBHOOK_SECRET: secret(
    'secret that signs the messages to ALERT_WEBHOOK_URL: whsec_ and base64; unset: no signature',
    text,
  ),
  ALERT_WEBHOOK_FORMAT: setting(
    'standard: JSON as in standardwebhooks.com; slack: text, also for Mattermost',
    oneOf('standard', 'slack'),
    'standard',
  ),
} satisfies SettingDefinitions;
