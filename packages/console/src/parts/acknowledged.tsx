import { type Acknowledgement, acknowledgementText } from '../../../../src/domain/alert.ts';
import { useNow } from '../lib/live.ts';

/** Shows who acknowledged an alert, until when and why. */
export function Acknowledged(acknowledgement: Acknowledgement) {
  const now = useNow();
  return <div class="muted">{acknowledgementText(acknowledgement, now)}</div>;
}
