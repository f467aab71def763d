/** Actions of an operator on several sources at once. Each source has its own request and its own row in the audit log. */
import { useState } from 'preact/hooks';
import { act } from '../lib/data.ts';
import { counted } from '../lib/format.ts';
import { Trouble } from '../parts/basics.tsx';
import { FormDialog, Reason, textFields } from '../parts/form-dialog.tsx';

const ACTIONS = {
  run: { verb: 'Run', done: 'will be run as soon as a worker has room', isDanger: false },
  disable: { verb: 'Disable', done: 'disabled', isDanger: true },
  enable: { verb: 'Enable', done: 'enabled', isDanger: false },
} as const;

type Action = keyof typeof ACTIONS;

interface SelectedSourcesProps {
  /** The ids of the sources that the table shows. */
  readonly shown: readonly string[];
  readonly selected: readonly string[];
  readonly onSelect: (ids: readonly string[]) => void;
}

export function SelectedSources({ shown, selected, onSelect }: SelectedSourcesProps) {
  const [asked, setAsked] = useState<Action>();
  const [done, setDone] = useState('');
  const [failures, setFailures] = useState<readonly string[]>([]);
  const carryOut = async (action: Action, fields: FormData) => {
    const failed: string[] = [];
    const errors: string[] = [];
    for (const id of selected) {
      try {
        await act(`/api/sources/${encodeURIComponent(id)}/${action}`, textFields(fields));
      } catch (error) {
        failed.push(id);
        errors.push(`${id}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const well = selected.length - failed.length;
    setDone(well > 0 ? `${counted(well, 'source')} ${ACTIONS[action].done}.` : '');
    setFailures(errors);
    onSelect(failed);
  };
  return (
    <div class="selection">
      <label class="check">
        <input
          type="checkbox"
          checked={shown.length > 0 && selected.length === shown.length}
          onChange={(event) => onSelect(event.currentTarget.checked ? shown : [])}
        />
        Select all
      </label>
      {(Object.keys(ACTIONS) as Action[]).map((action) => (
        <button key={action} type="button" disabled={selected.length === 0} onClick={() => setAsked(action)}>
          {ACTIONS[action].verb} …
        </button>
      ))}
      <span class="muted" role="status">
        {selected.length > 0 ? `${counted(selected.length, 'source')} selected. ` : ''}
        {done}
      </span>
      {failures.map((failure) => (
        <Trouble key={failure} text={failure} />
      ))}
      {asked !== undefined && (
        <FormDialog
          title={`${ACTIONS[asked].verb} ${counted(selected.length, 'source')}`}
          submit={ACTIONS[asked].verb}
          isDanger={ACTIONS[asked].isDanger}
          act={(fields) => carryOut(asked, fields)}
          onClose={() => setAsked(undefined)}
        >
          <p class="muted">{selected.join(', ')}</p>
          <Reason isNeeded />
        </FormDialog>
      )}
    </div>
  );
}
