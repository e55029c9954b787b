import { counted } from '@tenon/api/counted'
import { useMemo, useRef } from 'preact/hooks'
import type { JSX } from 'preact'
import type { PastDecisions } from '../../answers/past-decisions.ts'
import type { SpendAnswer } from '../../answers/spend.ts'
import type { FoldedDecision } from '../../model/folded-decisions.ts'
import type { PageNodeRow } from '../../model/page-view.ts'
import type { DecisionRow } from '../../model/view.ts'
import { localDay, localTime, priceText } from '../format.ts'
import { Answer, useAnswer, useLatest } from '../parts/answer.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Fleet } from '../parts/fleet.tsx'
import { Filter, filterText } from '../parts/filter.tsx'
import { NodeLink, ObjectLink, OwnerLink, PodLink, Sentence } from '../parts/object-link.tsx'
import { type Point, StepPlot } from '../parts/plot.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { When } from '../parts/when.tsx'
import { fleetAt } from '../state/fleet.ts'
import { beginOf } from '../state/periods.ts'
import { choose, chosen } from '../state/router.ts'
import { nowMs, rowOf, rowsOf, versionOf } from '../state/store.ts'

const [againMs, whileReadingMs] = [10_000, 1000]
const [hourMs, dayMs] = [3_600_000, 24 * 3_600_000]
/** How far back the chart goes. */
const chartDays = 14
const points = 168

type Answered = PastDecisions | { readonly absent: string }

/** What was decided in a time, newest first; a row is a decision with all that followed from it (page.md 2). */
export function DecisionsView(): JSX.Element {
  const [from, to] = ['from', 'to'].map((name) => timeOf(chosen(name)))
  const isReading = useRef(false)
  const query = new URLSearchParams({ text: filterText() })
  for (const name of ['from', 'to', 'pool', 'kind']) {
    const value = chosen(name)
    if (value !== undefined) query.set(name, value)
  }
  const slowly = Math.floor(nowMs.value / (isReading.current ? whileReadingMs : againMs))
  const asked = useLatest<Answered>(
    `/api/decisions?${query}`,
    slowly + versionOf('decisions'),
    whileReadingMs,
  )
  isReading.current = asked.kind === 'answered' && 'isReading' in asked.answer && asked.answer.isReading
  return (
    <>
      <Range from={from} to={to} />
      <PriceBrush from={from} to={to} />
      <Answer asked={asked} awaits="the decisions of this range">
        {(answer) =>
          'absent' in answer ? <p class="empty">{answer.absent}</p> : <Decisions answer={answer} />
        }
      </Answer>
    </>
  )
}

function timeOf(text: string | undefined): number | undefined {
  const ms = Number(text ?? 'none')
  return Number.isFinite(ms) ? ms : undefined
}

function chooseRange(fromMs: number | undefined, toMs: number | undefined): void {
  choose('from', fromMs === undefined ? undefined : String(Math.round(fromMs)))
  choose('to', toMs === undefined ? undefined : String(Math.round(toMs)))
}

/** From 18:00 to 8:00. */
function lastNight(): readonly [number, number] {
  const midnight = beginOf('day', nowMs.value)
  const isOver = nowMs.value > midnight + 8 * hourMs
  return [beginOf('day', nowMs.value, -1) + 18 * hourMs, isOver ? midnight + 8 * hourMs : nowMs.value]
}

function Range({
  from,
  to,
}: {
  readonly from: number | undefined
  readonly to: number | undefined
}): JSX.Element {
  const input = (label: string, ms: number | undefined, set: (ms: number | undefined) => void) => (
    <label>
      {label}
      <input
        type="datetime-local"
        value={ms === undefined ? '' : inputText(ms)}
        onChange={(event) => {
          const read = new Date(event.currentTarget.value).getTime()
          set(Number.isNaN(read) ? undefined : read)
        }}
      />
    </label>
  )
  return (
    <div class="controls">
      {input('From', from, (ms) => chooseRange(ms, to))}
      {input('To', to, (ms) => chooseRange(from, ms))}
      <div class="switch">
        <button type="button" onClick={() => chooseRange(...lastNight())}>
          Last night
        </button>
        <button type="button" onClick={() => chooseRange(nowMs.value - dayMs, undefined)}>
          24 h
        </button>
        <button type="button" onClick={() => chooseRange(nowMs.value - 7 * dayMs, undefined)}>
          7 days
        </button>
        <button type="button" onClick={() => chooseRange(undefined, undefined)}>
          All
        </button>
      </div>
    </div>
  )
}

/** Local time, as the input has it. */
function inputText(ms: number): string {
  const date = new Date(ms)
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The price per hour, on which a time is chosen by dragging. */
function PriceBrush({
  from,
  to,
}: {
  readonly from: number | undefined
  readonly to: number | undefined
}): JSX.Element {
  // The same for an hour, so that it is asked again rarely.
  const toMs = beginOf('hour', nowMs.value, 1)
  const fromMs = toMs - chartDays * dayMs
  const edges = Array.from({ length: points + 1 }, (_, at) => fromMs + ((toMs - fromMs) * at) / points)
  const times = `midnight=${toMs}&month=${toMs}&monthEnd=${toMs}`
  const asked = useAnswer<SpendAnswer | { readonly absent: string }>(
    `/api/spend?edges=${edges.join(',')}&${times}`,
    Math.floor(nowMs.value / 30_000),
  )
  const answer = asked.kind === 'answered' && !('absent' in asked.answer) ? asked.answer : undefined
  const lines = useMemo(() => [{ label: 'Price', points: pricesOf(answer) }], [answer])
  if (answer === undefined || lines[0]?.points.length === 0) return <></>
  const first = Math.max(fromMs, answer.fromMs ?? fromMs)
  return (
    <StepPlot
      lines={lines}
      fromMs={first}
      toMs={Math.max(nowMs.value, first + hourMs)}
      unit={answer.currency}
      what="Drag to choose a time. Mean price per hour"
      selected={[from ?? first, from === undefined && to === undefined ? first : (to ?? toMs)]}
      onSelect={(start, end) => chooseRange(start, end)}
    />
  )
}

/** Means over each part; the current one only until now. */
function pricesOf(answer: SpendAnswer | undefined): readonly Point[] {
  if (answer === undefined) return []
  const { edges, fromMs = Number.POSITIVE_INFINITY, takenAtMs, total } = answer
  return total.flatMap((amount, at) => {
    const begin = Math.max(edges[at] ?? 0, fromMs)
    const hours = (Math.min(edges[at + 1] ?? 0, takenAtMs) - begin) / hourMs
    return hours > 0 ? [{ atMs: begin, value: amount / hours }] : []
  })
}

function Decisions({ answer }: { readonly answer: PastDecisions }): JSX.Element {
  const { all, fromMs, isReading, kinds, nodePools, rows } = answer
  const days = Map.groupBy(rows, ({ atMs }) => localDay(atMs))
  const id = chosen('entry')
  const select = (title: string, name: string, values: readonly string[]) => (
    <label>
      {title}
      <select
        value={chosen(name) ?? ''}
        onChange={(event) => choose(name, event.currentTarget.value || undefined)}
      >
        <option value="">all</option>
        {values.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <>
      <div class="controls">
        {select('NodePool', 'pool', nodePools)}
        {select('Kind', 'kind', kinds)}
        <Filter />
        <span class="quiet">{counted(all, 'decision')}</span>
      </div>
      {isReading && (
        <p class="empty" role="status">
          Older entries of the journal are being read.
        </p>
      )}
      {!isReading && all === 0 && (
        <p class="empty">
          {fromMs === undefined ? 'Nothing has been decided yet.' : 'No decision is like that in this time.'}
        </p>
      )}
      {[...days].map(([day, decisions]) => (
        <section key={day}>
          <h2>{day}</h2>
          <ol class="journal folded">
            {decisions.map((decision) => (
              <Row key={decision.id} decision={decision} />
            ))}
          </ol>
        </section>
      ))}
      {all > rows.length && <p>The newest {rows.length} are shown; choose a shorter time to see others.</p>}
      {id !== undefined && <EntryDialog id={id} folded={rows.find((row) => row.id === id)} />}
    </>
  )
}

function Row({ decision }: { readonly decision: FoldedDecision }): JSX.Element {
  const { atMs, currency = '', effect, id, kind, nodePools, outcome, reason, title } = decision
  return (
    <li class={`entry kind-${kind}`}>
      <When at={new Date(atMs).toISOString()} />
      <span class="kind">{kind}</span>
      <span>
        <button type="button" class="link" onClick={() => choose('entry', id)}>
          {title}
        </button>{' '}
        <span class="quiet">
          {[reason, nodePools.join(', '), outcome].filter((part) => part !== '').join(' · ')}
        </span>
      </span>
      <span class="effect">
        {effect === undefined
          ? ''
          : `${effect < 0 ? '−' : '+'}${priceText(Math.abs(effect))} ${currency} per hour`}
      </span>
    </li>
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

/** @param folded what is known of an entry that is no longer among the newest. */
function EntryDialog({
  id,
  folded,
}: {
  readonly id: string
  readonly folded: FoldedDecision | undefined
}): JSX.Element {
  const entry = rowOf('decisions', id)
  const close = () => choose('entry', undefined)
  if (entry !== undefined)
    return (
      <Dialog title={`${entry.kind} ${entry.reason}`} onClose={close}>
        <EntryDetail entry={entry} />
      </Dialog>
    )
  return (
    <Dialog title={folded === undefined ? 'Decision' : `${folded.kind} ${folded.reason}`} onClose={close}>
      {folded === undefined ? (
        <p>The journal has no such entry any more.</p>
      ) : (
        <OldDecision decision={folded} />
      )}
    </Dialog>
  )
}

function OldDecision({ decision }: { readonly decision: FoldedDecision }): JSX.Element {
  const { atMs, nodePools, nodes, outcome, title, untilMs, workloads } = decision
  return (
    <>
      <p>
        <When at={new Date(atMs).toISOString()} withDate /> to{' '}
        <When at={new Date(untilMs).toISOString()} withDate /> · {title}
        {outcome !== '' && ` · ${outcome}`}
      </p>
      <ul>
        {nodePools.map((name) => (
          <li key={name}>
            NodePool <ObjectLink kind="NodePool" name={name} />
          </li>
        ))}
        {workloads.map(({ namespace, pods, workload }) => (
          <li key={`${namespace}/${workload}`}>
            <OwnerLink namespace={namespace} owner={workload} most={60} />, {counted(pods, 'pod')}
          </li>
        ))}
        {nodes.map((name) => (
          <li key={name}>
            <NodeLink name={name} />
          </li>
        ))}
      </ul>
      <p class="quiet">It is not among the newest entries; tenon journal prints older ones.</p>
    </>
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
      {entry.pods?.workloads?.map(({ namespace, pods, workload }) => (
        <p key={`${namespace}/${workload}`}>
          <OwnerLink namespace={namespace} owner={workload} most={60} />, {counted(pods, 'pod')}
        </p>
      ))}
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
