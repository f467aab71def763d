/** The dialog that acknowledges an alert. */
import { useState } from 'preact/hooks';
import type { ShownAlert } from '../../../../src/features/alerts/api.ts';
import { act } from '../lib/data.ts';
import { FormDialog, Reason, textFields } from '../parts/form-dialog.tsx';

/** Spans without reminders, and their labels; the first one is an acknowledgement until the alert ends. */
const SPANS = [
  ['', 'until it ends'],
  ['1h', 'for an hour'],
  ['4h', 'for 4 hours'],
  ['1d', 'for a day'],
  ['7d', 'for 7 days'],
  ['30d', 'for 30 days'],
] as const;

/** A button that asks for how long and why, and acknowledges an alert. */
export function Acknowledge({ id, kind, subject }: ShownAlert) {
  const [isOpen, setOpen] = useState(false);
  const send = (form: FormData) => {
    const fields = textFields(form);
    return act(`/api/alerts/${id}/${fields.for === undefined ? 'acknowledge' : 'snooze'}`, fields);
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Acknowledge …
      </button>
      {isOpen && (
        <FormDialog
          title={`Acknowledge ${kind} of ${subject}`}
          submit="Acknowledge"
          act={send}
          onClose={() => setOpen(false)}
        >
          <label class="field">
            <span>Send no reminders</span>
            <select name="for">
              {SPANS.map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          </label>
          <Reason isNeeded />
        </FormDialog>
      )}
    </>
  );
}
