/** Approves or rejects a pending batch, or undoes a decision. Each action needs a reason. */
import { useState } from 'preact/hooks';
import type { Decided, HeldChanges, ShownBatch } from '../../../../../src/features/console/routes/answers.ts';
import { act, messageOf } from '../../lib/data.ts';
import { useDraft } from '../../lib/draft.ts';
import { count, counted } from '../../lib/format.ts';
import { ErrorText } from '../../parts/basics.tsx';

type Action = 'approve' | 'reject' | 'undo';

export function Decide({ batch }: { batch: ShownBatch }) {
  // The draft belongs to the source, so the operator can reuse the reason if a newer batch replaces this one.
  const [reason, setReason] = useDraft(`held ${batch.sourceId}`);
  const [busy, setBusy] = useState<Action>();
  const [error, setError] = useState<string>();
  const [done, setDone] = useState<Decided>();
  const isWaiting = batch.status === 'pending';
  const decide = async (action: Action) => {
    if (reason.trim() === '') {
      setError('Give a reason. It is stored with the decision.');
      document.getElementById('reason')?.focus();
      return;
    }
    setBusy(action);
    setError(undefined);
    try {
      setDone(await act<Decided>(`/api/held/${batch.id}/${action}`, { reason }));
      setReason('');
    } catch (failure) {
      setError(messageOf(failure));
    }
    setBusy(undefined);
  };

  const result = done && (
    <p class="done" role="status">
      {resultText(done)}
    </p>
  );
  const isDecided = isWaiting && done !== undefined && done.decision !== 'undone';
  if (isDecided || (!isWaiting && !batch.reversible)) {
    const hasDraft = batch.status === 'superseded' && reason !== '';
    return hasDraft ? (
      <p class="muted">Your reason is saved for the next batch: “{reason}”</p>
    ) : (
      (result ?? null)
    );
  }
  return (
    <>
      {result}
      <form class="decide card" onSubmit={(event) => event.preventDefault()}>
        <label class="field wide">
          <span>Reason, stored with your name and the time</span>
          <input
            id="reason"
            value={reason}
            maxLength={500}
            autocomplete="off"
            aria-invalid={error !== undefined}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        {isWaiting && batch.changes && <p id="stores">{storesText(batch, batch.changes)}</p>}
        <Buttons isWaiting={isWaiting} busy={busy} decide={(action) => void decide(action)} />
        <ErrorText text={error} />
      </form>
    </>
  );
}

interface ButtonsProps {
  readonly isWaiting: boolean;
  /** The action that is running. */
  readonly busy: Action | undefined;
  readonly decide: (action: Action) => void;
}

function Buttons({ isWaiting, busy, decide }: ButtonsProps) {
  const disabled = busy !== undefined;
  return (
    <div class="buttons">
      {isWaiting ? (
        <>
          <button
            type="button"
            disabled={disabled}
            aria-describedby="stores"
            onClick={() => decide('approve')}
          >
            {busy === 'approve' ? 'Storing …' : 'Approve: store the batch'}
          </button>
          <button type="button" class="danger" disabled={disabled} onClick={() => decide('reject')}>
            {busy === 'reject' ? 'Rejecting …' : 'Reject: keep the stored rows'}
          </button>
        </>
      ) : (
        <button type="button" disabled={disabled} onClick={() => decide('undo')}>
          {busy === 'undo' ? 'Undoing …' : 'Undo the decision'}
        </button>
      )}
    </div>
  );
}

/** States what an approval stores. */
function storesText({ sourceId }: ShownBatch, { kind, diff, reasons }: HeldChanges): string {
  const prices = 'repriced' in diff && diff.repriced > 0 ? ` (${count(diff.repriced)} in price)` : '';
  const rejected = reasons.reduce((sum, each) => sum + each.count, 0);
  const unstored = rejected === 0 ? '' : ` It leaves out ${counted(rejected, 'rejected row')}.`;
  return `Approve stores ${count(diff.added)} new and ${count(diff.changed)} changed ${kind === 'catalogue' ? 'machines' : 'clusters'}${prices}, and retires ${count(diff.missing)}.${unstored} An undo is possible until the next run of ${sourceId}.`;
}

function resultText({ batch, decision, counts, published }: Decided): string {
  const what = counts
    ? `: ${count(counts.added)} new, ${count(counts.changed)} changed, ${count(counts.retired)} retired`
    : '';
  const later = published === false ? '. The cache is down and is updated later' : '';
  return {
    approved: `Batch ${batch} is stored${what}${later}.`,
    rejected: `Batch ${batch} is rejected. Readers keep the last good catalogue.`,
    undone: `The decision about batch ${batch} is undone${what}${later}.`,
  }[decision];
}
