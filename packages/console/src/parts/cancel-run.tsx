import type { CancelledRun } from '../../../../src/features/console/routes/answers.ts';
import { act } from '../lib/data.ts';
import { RequireRole } from '../lib/session.ts';
import { DialogButton, Reason, textFields } from './form-dialog.tsx';

/** The button that cancels a run, and its dialog. */
export function CancelRun({ source, run }: { source: string; run: number }) {
  const path = `/api/sources/${encodeURIComponent(source)}/cancel`;
  return (
    <RequireRole minRole="operator">
      <DialogButton
        label="Cancel run …"
        title={`Cancel run ${run} of ${source}`}
        submit="Cancel the run"
        isDanger
        act={(fields) => act<CancelledRun>(path, { run, ...textFields(fields) })}
      >
        <p class="muted">
          The run stores nothing and is not retried. The source runs again at its next slot.
        </p>
        <Reason isRequired />
      </DialogButton>
    </RequireRole>
  );
}
