/** The button that cancels a run which is under way. */
import { useState } from 'preact/hooks';
import type { CancelledRun } from '../../../../src/features/console/routes/api.ts';
import { act } from '../lib/data.ts';
import { May } from '../lib/session.ts';
import { FormDialog, Reason, textFields } from './form-dialog.tsx';

export function CancelRun({ source, run }: { source: string; run: number }) {
  const [isOpen, setOpen] = useState(false);
  const path = `/api/sources/${encodeURIComponent(source)}/cancel`;
  return (
    <May as="operator">
      <button type="button" onClick={() => setOpen(true)}>
        Cancel run …
      </button>
      {isOpen && (
        <FormDialog
          title={`Cancel run ${run} of ${source}`}
          submit="Cancel the run"
          isDanger
          act={(fields) => act<CancelledRun>(path, { run, ...textFields(fields) })}
          onClose={() => setOpen(false)}
        >
          <p class="muted">
            Nothing of it is stored, and no attempt of it follows. The next slot runs as usual.
          </p>
          <Reason isNeeded />
        </FormDialog>
      )}
    </May>
  );
}
