/** A dialog with fields, and the buttons that open one. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { messageOf } from '../lib/data.ts';
import { ErrorText } from './basics.tsx';

interface FormDialogProps {
  readonly title: string;
  /** The text of the submit button. */
  readonly submit: string;
  readonly isDanger?: boolean;
  /** Runs the action. If it throws, the dialog stays open and shows the error. */
  readonly act: (fields: FormData) => Promise<unknown>;
  /** Receives the fields after each input of an operator. */
  readonly onInput?: (fields: FormData) => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

function FormDialog({ title, submit, isDanger = false, act, onInput, onClose, children }: FormDialogProps) {
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
      // The browser returns the focus to the button that opened the dialog.
      dialog.current?.close();
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={heading} onClose={onClose}>
      <form
        class="decide"
        onSubmit={(event) => void onSubmit(event)}
        onInput={(event) => onInput?.(new FormData(event.currentTarget))}
      >
        <h2 id={heading}>{title}</h2>
        {children}
        <ErrorText text={error} />
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

interface DialogButtonProps extends Omit<FormDialogProps, 'onClose'> {
  readonly onClose?: () => void;
  readonly label: string;
  /** The name for screen readers, if the label does not name the row. */
  readonly ariaLabel?: string;
  readonly isMain?: boolean;
  readonly isDisabled?: boolean;
}

/** A button that opens a dialog. */
export function DialogButton({
  label,
  ariaLabel,
  isMain,
  isDisabled,
  onClose,
  ...dialog
}: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class={dialog.isDanger ? 'danger' : isMain ? 'main' : ''}
        aria-label={ariaLabel}
        disabled={isDisabled ?? false}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && (
        <FormDialog
          {...dialog}
          onClose={() => {
            setOpen(false);
            onClose?.();
          }}
        />
      )}
    </>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly value?: string;
  readonly isRequired?: boolean;
  /** A regular expression that the whole value must match, and its description. */
  readonly pattern?: readonly [pattern: string, meaning: string];
  /** Values that the browser offers while an operator types. */
  readonly suggestions?: readonly string[];
  readonly onInput?: (value: string) => void;
}

export function Field(props: FieldProps) {
  const { label, name, value = '', isRequired = false, pattern, suggestions, onInput } = props;
  const list = useId();
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="text"
        name={name}
        defaultValue={value}
        required={isRequired}
        maxLength={200}
        autocomplete="off"
        {...(pattern && { pattern: pattern[0], title: pattern[1] })}
        {...(suggestions && { list })}
        onInput={(event) => onInput?.(event.currentTarget.value)}
      />
      {suggestions && (
        <datalist id={list}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface SelectProps {
  readonly label: string;
  readonly name: string;
  readonly byDefault: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChoose?: (value: string) => void;
}

export function Select({ label, name, byDefault, options, onChoose }: SelectProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select
        name={name}
        defaultValue={byDefault}
        onChange={(event) => onChoose?.(event.currentTarget.value)}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === byDefault}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Reason({ isRequired = false }: { isRequired?: boolean }) {
  return (
    <label class="field">
      <span>Reason, stored with your name and the time{isRequired ? '' : ' (optional)'}</span>
      <input name="reason" required={isRequired} maxLength={500} autocomplete="off" />
    </label>
  );
}

/** Returns the trimmed texts of a form by field name, without empty ones. */
export function textFields(fields: FormData): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of fields) {
    if (typeof value === 'string' && value.trim() !== '') texts[name] = value.trim();
  }
  return texts;
}
