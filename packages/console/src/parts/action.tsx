import { useState } from 'preact/hooks';
import { act, messageOf } from '../lib/data.ts';

interface ActionProps<T> {
  readonly address: string;
  readonly label: string;
  /** Describes the result to the operator. */
  readonly result: (answer: T) => string;
}

/** A button that runs an action and shows the result next to it. */
export function Action<T>({ address, label, result }: ActionProps<T>) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setText('');
    setText(await act<T>(address, {}).then(result, messageOf));
    setBusy(false);
  };
  return (
    <span class="action">
      <button type="button" disabled={busy} onClick={() => void run()}>
        {label}
      </button>{' '}
      <span class="muted" role="status">
        {text}
      </span>
    </span>
  );
}
