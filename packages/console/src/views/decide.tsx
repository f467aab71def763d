/** Approves or rejects a batch that waits, or takes a decision back; always with a reason. */
import { useState } from 'preact/hooks';
import type { Decided, ShownBatch } from '../../../../src/features/console/routes/api.ts';
import { act } from '../lib/data.ts';
import { useDraft } from '../lib/draft.ts';
import { count } from '../lib/format.ts';
import { Trouble } from '../parts/basics.tsx';

type Action = 'approve' | 'reject' | 'undo';

export function Decide({ batch }: { batch: ShownBatch }) {
  // The reason is about the source: a batch that replaces this one is decided about with the same words.
  const [reason, setReason] = useDraft(`held ${batch.sourceId}`);
  const [busy, setBusy] = useState<Action>();
  const [error, setError] = useState<string>();
  const [done, setDone] = useState<Decided>();
  const waits = batch.status === 'pending';
  const decide = async (action: Action) => {
    if (reason.trim() === '') {
      setError('Say why, for the record.');
      document.getElementById('reason')?.focus();
      return;
    }
    setBusy(action);
    setError(undefined);
    try {
      setDone(await act<Decided>(`/api/held/${batch.id}/${action}`, { reason }));
      setReason('');
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setBusy(undefined);
  };

  const told = done && (
    <p class="done" role="status">
      {toldOf(done)}
    </p>
  );
  const isDecided = waits && done !== undefined && done.decision !== 'undone';
  if (isDecided || (!waits && !batch.reversible)) {
    const isKept = batch.status === 'superseded' && reason !== '';
    return isKept ? <p class="muted">Your reason is kept for the next batch: “{reason}”</p> : (told ?? null);
  }
  return (
    <>
      {told}
      <form
        class="decide card"
        onSubmit={(event) => {
          event.preventDefault();
        }}
      >
        <label class="field wide">
          <span>Reason, kept with your name and the time</span>
          <input
            id="reason"
            value={reason}
            maxLength={500}
            autocomplete="off"
            aria-invalid={error !== undefined}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <Buttons waits={waits} busy={busy} decide={(action) => void decide(action)} />
        <Trouble text={error} />
      </form>
    </>
  );
}

interface ButtonsProps {
  readonly waits: boolean;
  /** The action that is being carried out. */
  readonly busy: Action | undefined;
  readonly decide: (action: Action) => void;
}

function Buttons({ waits, busy, decide }: ButtonsProps) {
  const disabled = busy !== undefined;
  return (
    <div class="buttons">
      {waits ? (
        <>
          <button type="button" class="main" disabled={disabled} onClick={() => decide('approve')}>
            {busy === 'approve' ? 'Storing …' : 'Approve: store it'}
          </button>
          <button type="button" class="danger" disabled={disabled} onClick={() => decide('reject')}>
            {busy === 'reject' ? 'Dropping …' : 'Reject: keep what is stored'}
          </button>
        </>
      ) : (
        <button type="button" disabled={disabled} onClick={() => decide('undo')}>
          {busy === 'undo' ? 'Taking it back …' : 'Take the decision back'}
        </button>
      )}
    </div>
  );
}

function toldOf({ batch, decision, counts, published }: Decided): string {
  const what = counts
    ? `: ${count(counts.added)} new, ${count(counts.changed)} changed, ${count(counts.retired)} retired`
    : '';
  const later = published === false ? '. The cache is away and gets it later' : '';
  return {
    approved: `Batch ${batch} is stored${what}${later}.`,
    rejected: `Batch ${batch} is rejected; readers keep the last good catalogue.`,
    undone: `The decision about batch ${batch} is taken back${what}${later}.`,
  }[decision];
}
