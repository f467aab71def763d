import { type Acknowledgement, acknowledgementText } from '../../../../src/domain/alert.ts';
import { useNow } from '../lib/live.ts';

/** Who has acknowledged an alert, and why. */
export function Acknowledged(acknowledgement: Acknowledgement) {
  const now = useNow();
  return <div class="muted">{acknowledgementText(acknowledgement, now)}</div>;
}
