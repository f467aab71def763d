import { Component, type ComponentChildren } from 'preact';
import { Title } from './basics.tsx';

/** Shows a failure of the view inside it, which would leave an empty page. A new `key` tries again. */
export class ErrorBoundary extends Component<{ children: ComponentChildren }, { failure?: string }> {
  static override getDerivedStateFromError(error: unknown) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
  }

  override render() {
    const { failure } = this.state;
    if (failure === undefined) return this.props.children;
    return (
      <>
        <Title text="This page failed" />
        <p class="trouble" role="alert">
          The console could not show the data of this page: {failure}
        </p>
        <p>
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>{' '}
          or open another page. If it fails again, report the message with the address of the page.
        </p>
      </>
    );
  }
}
