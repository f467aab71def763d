import { type Acknowledgement, acknowledgementText } from '../../../../src/domain/alert.ts';
import { useNow } from '../lib/live.ts';

/** An acknowledgement: by whom, until when and why. */
export function Acknowledged(acknowledgement: Acknowledgement) {
  const now = useNow();
  return <div class="muted">{acknowledgementText(acknowledgement, now)}</div>;
}
