/** A question over the page: a few fields, what is done with them, and the way back. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Trouble } from './basics.tsx';

interface FormDialogProps {
  readonly title: string;
  /** The text of the button that does it. */
  readonly submit: string;
  readonly isDanger?: boolean;
  /** Does it, with the values of the fields by their names; what it throws is shown, and the question stays. */
  readonly act: (fields: FormData) => Promise<unknown>;
  /** Called when it was done, or not wanted any more. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function FormDialog({ title, submit, isDanger = false, act, onClose, children }: FormDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (busy || !(event.currentTarget instanceof HTMLFormElement)) return;
    setBusy(true);
    setError(undefined);
    try {
      await act(new FormData(event.currentTarget));
      // Closes by itself what is still there: the button that opened it has the focus again.
      dialog.current?.close();
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={heading} onClose={onClose}>
      <form class="decide" onSubmit={(event) => void onSubmit(event)}>
        <h2 id={heading}>{title}</h2>
        {children}
        <Trouble text={error} />
        <div class="buttons">
          <button type="submit" class={isDanger ? 'danger' : 'main'} disabled={busy}>
            {submit}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly value?: string;
  readonly isNeeded?: boolean;
  /** A regular expression of the whole value, and what it means. */
  readonly pattern?: readonly [pattern: string, meaning: string];
}

export function Field({ label, name, value = '', isNeeded = false, pattern }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        name={name}
        defaultValue={value}
        required={isNeeded}
        maxLength={200}
        autocomplete="off"
        {...(pattern && { pattern: pattern[0], title: pattern[1] })}
      />
    </label>
  );
}

export function Reason({ isNeeded = false }: { isNeeded?: boolean }) {
  return (
    <label class="field">
      <span>Reason, kept with your name and the time{isNeeded ? '' : ' (may be empty)'}</span>
      <input name="reason" required={isNeeded} maxLength={500} autocomplete="off" />
    </label>
  );
}

/** The values of a form's text fields, by name; those that are empty are left out. */
export function textFields(fields: FormData): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of fields) {
    if (typeof value === 'string' && value.trim() !== '') texts[name] = value.trim();
  }
  return texts;
}
