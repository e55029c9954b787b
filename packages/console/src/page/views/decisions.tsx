import { counted } from '@tenon/api/counted'
import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import type { PageNodeRow } from '../../model/page-view.ts'
import type { DecisionRow } from '../../model/view.ts'
import { localDay, localTime, priceText } from '../format.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Filter, filterText } from '../parts/filter.tsx'
import { Name } from '../parts/name.tsx'
import { NodeLink, ObjectLink, PodLink, Sentence } from '../parts/object-link.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { When } from '../parts/when.tsx'
import { fleetAt, type FleetNode } from '../state/fleet.ts'
import { choose, chosen } from '../state/router.ts'
import { absences, rowOf, rowsOf, versionOf } from '../state/store.ts'

const mostShown = 200

/** The journal as a timeline, newest first. */
export function DecisionsView(): JSX.Element {
  const version = versionOf('decisions')
  const kind = chosen('kind') ?? ''
  const filter = filterText()
  const all = useMemo(
    () =>
      rowsOf('decisions').toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : b.id.localeCompare(a.id))),
    [version],
  )
  const kinds = [...new Set(all.map((entry) => entry.kind))].toSorted()
  const shown = all.filter(
    (entry) =>
      (kind === '' || entry.kind === kind) &&
      `${entry.reason} ${entry.message} ${entry.nodePool ?? ''} ${entry.nodes.join(' ')} ${entry.nodeClaims.join(' ')}`
        .toLowerCase()
        .includes(filter.toLowerCase()),
  )
  const days = Map.groupBy(shown.slice(0, mostShown), ({ at }) => localDay(Date.parse(at)))
  const id = chosen('entry')
  const absent = absences.value.find(({ what }) => what === 'journal')
  return (
    <>
      <div class="controls">
        <label>
          Kind
          <select value={kind} onChange={(event) => choose('kind', event.currentTarget.value || undefined)}>
            <option value="">all</option>
            {kinds.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <Filter />
        <span class="quiet">
          {shown.length} of {all.length} entries
        </span>
      </div>
      {absent !== undefined && <p class="empty">{absent.why}</p>}
      {absent === undefined && all.length === 0 && <p class="empty">Nothing has been decided yet.</p>}
      {[...days].map(([day, entries]) => (
        <section key={day}>
          <h2>{day}</h2>
          <ol class="journal">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ol>
        </section>
      ))}
      {shown.length > mostShown && <p>The newest {mostShown} are shown; filter to find others.</p>}
      {id !== undefined && <EntryDialog id={id} />}
    </>
  )
}

function Entry({ entry }: { readonly entry: DecisionRow }): JSX.Element {
  return (
    <li class={`entry kind-${entry.kind}`}>
      <When at={entry.at} />
      <span class="kind">{entry.kind}</span>
      <button type="button" class="link" onClick={() => choose('entry', entry.id)}>
        {entry.reason}: {entry.message}
      </button>
      <span class="quiet">{priceChange(entry)}</span>
    </li>
  )
}

function priceChange({ pricePerHour, currency = '' }: DecisionRow): string {
  const { after, before } = pricePerHour ?? {}
  if (before === undefined && after === undefined) return ''
  const change = before === undefined ? priceText(after) : `${priceText(before)} → ${priceText(after)}`
  return `${change} ${currency} per hour`
}

function EntryDialog({ id }: { readonly id: string }): JSX.Element {
  const entry = rowOf('decisions', id)
  const close = () => choose('entry', undefined)
  if (entry === undefined)
    return (
      <Dialog title="Decision" onClose={close}>
        <p>The journal has no such entry any more.</p>
      </Dialog>
    )
  return (
    <Dialog title={`${entry.kind} ${entry.reason}`} onClose={close}>
      <EntryDetail entry={entry} />
    </Dialog>
  )
}

function EntryDetail({ entry }: { readonly entry: DecisionRow }): JSX.Element {
  const journal = rowsOf('decisions')
  const { after, before } = useMemo(
    () => fleetAt(journal, rowsOf('nodes'), entry),
    [entry, versionOf('decisions')],
  )
  const others = rowsOf('nodes').filter(
    ({ nodeClaim, node, why }) =>
      why !== undefined && !entry.nodeClaims.includes(nodeClaim ?? '') && !entry.nodes.includes(node ?? ''),
  )
  const related = journal
    .filter(
      (each) => each.id !== entry.id && entry.decision !== undefined && each.decision === entry.decision,
    )
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
  return (
    <>
      <p>
        <When at={entry.at} withDate /> · {entry.message}
        {entry.nodePool !== undefined && (
          <>
            {' '}
            · NodePool <ObjectLink kind="NodePool" name={entry.nodePool} />
          </>
        )}
        {entry.observed === true && ' · only observed, not carried out'}
      </p>
      <p>{priceChange(entry)}</p>
      {entry.pods !== undefined && entry.pods.count > 0 && (
        <p>
          {counted(entry.pods.count, 'pod')}
          {entry.pods.names.map((id, at) => (
            <span key={id}>
              {at === 0 ? ': ' : ', '}
              <PodLink id={id} most={60} />
            </span>
          ))}
          {entry.pods.count > entry.pods.names.length && entry.pods.names.length > 0 && ' and more'}
        </p>
      )}
      <div class="two">
        <Fleet title="Before" nodes={before} />
        <Fleet title="After" nodes={after} />
      </div>
      {related.length > 0 && (
        <>
          <h3>Of the same decision</h3>
          <ol class="journal">
            {related.map((each) => (
              <Entry key={each.id} entry={each} />
            ))}
          </ol>
        </>
      )}
      <h3>Other nodes, and why they stay</h3>
      <p class="quiet">As it is now.</p>
      <Table
        caption="Other nodes, and why they stay"
        columns={otherColumns}
        rows={others}
        rowKey={({ id }) => id}
        first={{ title: 'Node' }}
        empty="Nothing is known of others."
      />
    </>
  )
}

const otherColumns: readonly Column<PageNodeRow>[] = [
  {
    title: 'Node',
    cell: ({ name }) => <NodeLink name={name} most={30} />,
    order: ({ name }) => name,
  },
  { title: 'Cause', cell: ({ why }) => why?.cause ?? '', order: ({ why }) => why?.cause },
  {
    title: 'Why',
    cell: ({ why }) => (
      <Sentence
        text={`${why?.message ?? ''}${why?.until === undefined ? '' : ` (until ${localTime(Date.parse(why.until), true)})`}`}
      />
    ),
    isText: true,
  },
]

const words: Readonly<Record<FleetNode['role'], string>> = {
  stays: '',
  goes: 'goes',
  comes: 'comes',
}

/** The nodes at a time as squares; those that are added or removed are marked and named. */
function Fleet({
  title,
  nodes,
}: {
  readonly title: string
  readonly nodes: readonly FleetNode[]
}): JSX.Element {
  const marked = nodes.filter(({ role }) => role !== 'stays')
  const prices = nodes.map(({ pricePerHour }) => pricePerHour)
  const known = prices.filter((price) => price !== undefined)
  const sum = known.reduce((all, price) => all + price, 0)
  return (
    <section>
      <h3>
        {title}: {counted(nodes.length, 'node')}, {priceText(sum)}
        {known.length < prices.length && ` ?${prices.length - known.length}`} per hour
      </h3>
      <div class="fleet" aria-hidden="true">
        {nodes.map((node) => (
          <span key={node.name} class={node.role} title={`${node.name} ${node.type ?? ''}`} />
        ))}
      </div>
      <ul>
        {marked.map((node) => (
          <li key={node.name}>
            {words[node.role]}: <ObjectLink kind="NodeClaim" name={node.name} />{' '}
            <Name name={node.type ?? '?'} /> {priceText(node.pricePerHour)}
          </li>
        ))}
      </ul>
    </section>
  )
}
