import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { type LiveState, useLiveState } from './lib/live.ts';
import { followLinks, navigate, type Place, usePlace } from './lib/router.ts';
import { useMay } from './lib/session.ts';
import { Title } from './parts/basics.tsx';
import { Operator } from './parts/operator.tsx';
import './styles/base.css';
import './styles/parts.css';
import './styles/tables.css';
import './styles/charts.css';
import './styles/forms.css';
import './styles/narrow.css';
import { AlertsView } from './views/alerts.tsx';
import { AuditView } from './views/audit.tsx';
import { BatchView } from './views/batch.tsx';
import { ChangesView } from './views/changes.tsx';
import { ClusterView } from './views/cluster.tsx';
import { ClustersView } from './views/clusters.tsx';
import { HeldView } from './views/held.tsx';
import { MachineView } from './views/machine.tsx';
import { MachinesView } from './views/machines.tsx';
import { OperatorsView } from './views/operators.tsx';
import { OrganizationView } from './views/organization.tsx';
import { OrganizationsView } from './views/organizations.tsx';
import { OverviewView } from './views/overview.tsx';
import { RunView } from './views/run.tsx';
import { SourceView } from './views/source.tsx';

const LINKS = [
  ['/', 'Overview', 'o'],
  ['/held', 'Held', 'h'],
  ['/changes', 'Changes', 'c'],
  ['/machines', 'Machines', 'm'],
  ['/alerts', 'Alerts', 'a'],
  ['/clusters', 'Clusters', 'k'],
  ['/organizations', 'Organizations', 'z'],
  ['/audit', 'Audit', 'u'],
  ['/operators', 'Operators', 'p'],
] as const;

const LIVE: Readonly<Record<LiveState, string>> = {
  connecting: 'connecting …',
  live: 'live',
  lost: 'connection lost; trying again',
};

function App() {
  const place = usePlace();
  const live = useLiveState();
  const hidden = [...(useMay('operator') ? [] : ['/audit']), ...(useMay('admin') ? [] : ['/operators'])];
  useEffect(() => keys(), []);
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="bar">
        <strong>Fleetbook</strong>
        <nav aria-label="Console">
          {LINKS.filter(([path]) => !hidden.includes(path)).map(([path, text]) => (
            <a key={path} href={path} aria-current={isIn(place.path, path) ? 'page' : undefined}>
              {text}
            </a>
          ))}
          <a href="/queues">Queues</a>
          <a href="/metrics">Metrics</a>
        </nav>
        <span class={`live ${live}`} role="status">
          {LIVE[live]}
        </span>
        <Operator />
      </header>
      <main id="main" tabIndex={-1}>
        <View place={place} />
      </main>
    </>
  );
}

const isIn = (path: string, link: string) => (link === '/' ? path === '/' : path.startsWith(link));

function View({ place }: { place: Place }) {
  if (place.path === '/') return <OverviewView place={place} />;
  if (place.path === '/held') return <HeldView />;
  if (place.path === '/alerts') return <AlertsView place={place} />;
  const [, source] = /^\/sources\/([^/]+)$/.exec(place.path) ?? [];
  if (source !== undefined) return <SourceView key={source} place={place} id={decodeURIComponent(source)} />;
  const [, batch] = /^\/held\/([^/]+)$/.exec(place.path) ?? [];
  if (batch !== undefined) return <BatchView key={batch} place={place} id={decodeURIComponent(batch)} />;
  if (place.path === '/changes') return <ChangesView place={place} />;
  const [, run] = /^\/runs\/([^/]+)$/.exec(place.path) ?? [];
  if (run !== undefined) return <RunView key={run} place={place} id={decodeURIComponent(run)} />;
  if (place.path === '/machines') return <MachinesView place={place} />;
  const [, machine] = /^\/machines\/([^/]+)$/.exec(place.path) ?? [];
  if (machine !== undefined) return <MachineView key={machine} id={decodeURIComponent(machine)} />;
  if (place.path === '/clusters') return <ClustersView place={place} />;
  const [, cluster] = /^\/clusters\/([^/]+)$/.exec(place.path) ?? [];
  if (cluster !== undefined)
    return <ClusterView key={cluster} place={place} id={decodeURIComponent(cluster)} />;
  if (place.path === '/organizations') return <OrganizationsView place={place} />;
  const [, slug] = /^\/organizations\/([^/]+)$/.exec(place.path) ?? [];
  if (slug !== undefined)
    return <OrganizationView key={slug} place={place} slug={decodeURIComponent(slug)} />;
  if (place.path === '/operators') return <OperatorsView />;
  if (place.path === '/audit') return <AuditView place={place} />;
  return <Title text="There is no such page" />;
}

/** `/` goes to the search field; `g` and a letter to a page. */
function keys(): () => void {
  let isGoing = false;
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
    const link = isGoing ? LINKS.find(([, , letter]) => letter === event.key) : undefined;
    isGoing = event.key === 'g';
    if (link) navigate(link[0]);
  };
  addEventListener('keydown', onKey);
  return () => removeEventListener('keydown', onKey);
}

followLinks();
const root = document.getElementById('app');
if (root) render(<App />, root);
