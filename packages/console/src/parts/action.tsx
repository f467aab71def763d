import { useState } from 'preact/hooks';
import { act } from '../lib/data.ts';

interface ActionProps<T> {
  readonly address: string;
  readonly label: string;
  readonly told: (answer: T) => string;
}

/** A button that carries out an action, and shows the result next to it. */
export function Action<T>({ address, label, told }: ActionProps<T>) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setText('');
    try {
      setText(told(await act<T>(address, {})));
    } catch (error) {
      setText(error instanceof Error ? error.message : String(error));
    }
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
