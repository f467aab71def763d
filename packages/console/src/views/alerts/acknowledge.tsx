import type { ShownAlert } from '../../../../../src/features/notifications/answers.ts';
import { act } from '../../lib/data.ts';
import { DialogButton, Reason, Select, textFields } from '../../parts/form-dialog.tsx';

/** Durations without reminders. The first one acknowledges the alert; the others snooze it. */
const SPANS = [
  ['', 'until it ends'],
  ['1h', 'for an hour'],
  ['4h', 'for 4 hours'],
  ['1d', 'for a day'],
  ['7d', 'for 7 days'],
  ['30d', 'for 30 days'],
] as const;

/** The button that acknowledges an alert, and its dialog. */
export function Acknowledge({ id, kind, subject }: ShownAlert) {
  const send = (form: FormData) => {
    const fields = textFields(form);
    return act(`/api/alerts/${id}/${fields.for === undefined ? 'acknowledge' : 'snooze'}`, fields);
  };
  return (
    <DialogButton
      label="Acknowledge …"
      title={`Acknowledge ${kind} of ${subject}`}
      submit="Acknowledge"
      act={send}
    >
      <Select label="Send no reminders" name="for" byDefault="" options={SPANS} />
      <Reason isRequired />
    </DialogButton>
  );
}
