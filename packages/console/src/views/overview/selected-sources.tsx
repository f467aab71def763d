/** Runs an action on several sources. Each source gets a separate request and a separate row in the audit log. */
import { useState } from 'preact/hooks';
import { act, messageOf } from '../../lib/data.ts';
import { counted } from '../../lib/format.ts';
import { ErrorText } from '../../parts/basics.tsx';
import { DialogButton, Reason, textFields } from '../../parts/form-dialog.tsx';

const ACTIONS = [
  { action: 'run', verb: 'Run', done: 'requested to run now, or after the current run', isDanger: false },
  { action: 'disable', verb: 'Disable', done: 'disabled', isDanger: true },
  { action: 'enable', verb: 'Enable', done: 'enabled', isDanger: false },
] as const;

interface SelectedSourcesProps {
  /** The ids of the sources that the table shows. */
  readonly shown: readonly string[];
  readonly selected: readonly string[];
  readonly onSelect: (ids: readonly string[]) => void;
}

export function SelectedSources({ shown, selected, onSelect }: SelectedSourcesProps) {
  const [result, setResult] = useState('');
  const [failures, setFailures] = useState<ReadonlyMap<string, string>>(new Map());
  const runAction = async ({ action, done }: (typeof ACTIONS)[number], fields: FormData) => {
    const failed = new Map<string, string>();
    for (const id of selected) {
      await act(`/api/sources/${encodeURIComponent(id)}/${action}`, textFields(fields)).catch(
        (error: unknown) => failed.set(id, messageOf(error)),
      );
    }
    const succeeded = selected.length - failed.size;
    setResult(succeeded > 0 ? `${counted(succeeded, 'source')} ${done}.` : '');
    setFailures(failed);
    onSelect([...failed.keys()]);
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
      {ACTIONS.map((each) => (
        <DialogButton
          key={each.action}
          label={`${each.verb} …`}
          title={`${each.verb} ${counted(selected.length, 'source')}`}
          submit={each.verb}
          isDanger={each.isDanger}
          isDisabled={selected.length === 0}
          act={(fields) => runAction(each, fields)}
        >
          <p class="muted">{selected.join(', ')}</p>
          <Reason isRequired />
        </DialogButton>
      ))}
      <span class="muted" role="status">
        {selected.length > 0 ? `${counted(selected.length, 'source')} selected. ` : ''}
        {result}
      </span>
      {[...failures].map(([id, failure]) => (
        <ErrorText key={id} text={`${id}: ${failure}`} />
      ))}
    </div>
  );
}
