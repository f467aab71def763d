import { render, type VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { type LiveState, useLiveState } from './lib/live.ts';
import { followLinks, navigate, type Place, usePlace } from './lib/router.ts';
import { useHasRole } from './lib/session.ts';
import { Title } from './parts/basics.tsx';
import { ErrorBoundary } from './parts/error-boundary.tsx';
import { Operator } from './parts/operator.tsx';
import { Pages } from './parts/pages.tsx';
import './styles/base.css';
import './styles/parts.css';
import './styles/tables.css';
import './styles/charts.css';
import './styles/forms.css';
import './styles/narrow.css';
import { AlertsView } from './views/alerts/alerts.tsx';
import { AuditView } from './views/audit.tsx';
import { ChangesView } from './views/changes.tsx';
import { ClusterView } from './views/clusters/cluster.tsx';
import { ClustersView } from './views/clusters/clusters.tsx';
import { BatchView } from './views/held/batch.tsx';
import { HeldView } from './views/held/held.tsx';
import { LifecycleView } from './views/lifecycle.tsx';
import { MachineView } from './views/machines/machine.tsx';
import { MachinesView } from './views/machines/machines.tsx';
import { OperatorsView } from './views/operators.tsx';
import { OrganizationView } from './views/organizations/organization.tsx';
import { OrganizationsView } from './views/organizations/organizations.tsx';
import { OverviewView } from './views/overview/overview.tsx';
import { RunView } from './views/runs/run.tsx';
import { SourceView } from './views/sources/source.tsx';

const LINKS = [
  ['/', 'Overview', 'o'],
  ['/held', 'Held', 'h'],
  ['/changes', 'Changes', 'c'],
  ['/machines', 'Machines', 'm'],
  ['/alerts', 'Alerts', 'a'],
  ['/clusters', 'Clusters', 'k'],
  ['/lifecycle', 'Lifecycle', 'l'],
  ['/organizations', 'Organizations', 'z'],
  ['/audit', 'Audit', 'u'],
  ['/operators', 'Operators', 'p'],
] as const;

const LIVE: Readonly<Record<LiveState, string>> = {
  connecting: 'connecting …',
  live: 'live',
  lost: 'connection lost; reconnecting',
};

function App() {
  const place = usePlace();
  const live = useLiveState();
  const hidden = [
    ...(useHasRole('operator') ? [] : ['/audit']),
    ...(useHasRole('admin') ? [] : ['/operators']),
  ];
  useEffect(() => handleShortcuts(), []);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <strong>Fleetbook</strong>
        <Pages path={place.path} count={LINKS.length - hidden.length}>
          {LINKS.filter(([path]) => !hidden.includes(path)).map(([path, text]) => (
            <a key={path} href={path} aria-current={isIn(place.path, path) ? 'page' : undefined}>
              {text}
            </a>
          ))}
          <a href="/queues">Queues</a>
          <a href="/metrics">Metrics</a>
        </Pages>
        <span class={`live ${live}`} role="status">
          {LIVE[live]}
        </span>
        <Operator />
      </header>
      <main id="main" tabIndex={-1}>
        <ErrorBoundary key={place.path}>
          <View place={place} />
        </ErrorBoundary>
      </main>
    </>
  );
}

const isIn = (path: string, link: string) => (link === '/' ? path === '/' : path.startsWith(link));

/** The views and their paths. The first capture group of a path is an id. */
const PAGES: readonly (readonly [path: RegExp, view: (place: Place, id: string) => VNode])[] = [
  [/^\/$/, (place) => <OverviewView place={place} />],
  [/^\/sources\/([^/]+)$/, (place, id) => <SourceView key={id} place={place} id={id} />],
  [/^\/held$/, () => <HeldView />],
  [/^\/held\/([^/]+)$/, (place, id) => <BatchView key={id} place={place} id={id} />],
  [/^\/runs\/([^/]+)$/, (place, id) => <RunView key={id} place={place} id={id} />],
  [/^\/changes$/, (place) => <ChangesView place={place} />],
  [/^\/machines$/, (place) => <MachinesView place={place} />],
  [/^\/machines\/([^/]+)$/, (_, id) => <MachineView key={id} id={id} />],
  [/^\/clusters$/, (place) => <ClustersView place={place} />],
  [/^\/clusters\/([^/]+)$/, (place, id) => <ClusterView key={id} place={place} id={id} />],
  [/^\/lifecycle$/, (place) => <LifecycleView place={place} />],
  [/^\/organizations$/, (place) => <OrganizationsView place={place} />],
  [/^\/organizations\/([^/]+)$/, (place, id) => <OrganizationView key={id} place={place} slug={id} />],
  [/^\/alerts$/, (place) => <AlertsView place={place} />],
  [/^\/audit$/, (place) => <AuditView place={place} />],
  [/^\/operators$/, () => <OperatorsView />],
];

function View({ place }: { place: Place }) {
  for (const [path, view] of PAGES) {
    const found = path.exec(place.path);
    const id = found && decoded(found[1] ?? '');
    if (id !== undefined && id !== null) return view(place, id);
  }
  return (
    <>
      <Title text="This page does not exist" />
      <p class="calm">
        No page has the address {place.path}. <a href="/">Open the overview</a>
      </p>
    </>
  );
}

/** Returns the text of an escaped part of an address; undefined if an escape is bad. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

/** Handles keyboard shortcuts: `/` focuses the search field; `g` and a letter open a page. */
function handleShortcuts(): () => void {
  let isAfterG = false;
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof Element && event.target.matches('input, select, textarea')) return;
    if (event.key === '/') {
      const field = document.querySelector<HTMLInputElement>('[data-search]');
      if (field === null) return;
      event.preventDefault();
      field.focus();
      return;
    }
    const link = isAfterG ? LINKS.find(([, , letter]) => letter === event.key) : undefined;
    isAfterG = event.key === 'g';
    if (link) navigate(link[0]);
  };
  addEventListener('keydown', onKey);
  return () => removeEventListener('keydown', onKey);
}

followLinks();
const root = document.getElementById('app');
if (root) render(<App />, root);
