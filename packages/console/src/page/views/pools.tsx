import { counted } from '@tenon/api/counted'
import { useMemo, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { BudgetStep, OfferingAnswer, PoolAnswer, PoolsAnswer } from '../../answers/pools.ts'
import type { GroupRow } from '../../model/view.ts'
import { localTime, priceText, utcTime } from '../format.ts'
import { PauseButton } from '../parts/act.tsx'
import { Answer, useAnswer } from '../parts/answer.tsx'
import { Filter, filterText } from '../parts/filter.tsx'
import { Name } from '../parts/name.tsx'
import { ObjectLink, Sentence } from '../parts/object-link.tsx'
import { Start } from '../parts/start.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { rowsOf, versionOf } from '../state/store.ts'

const timelineMs = 48 * 3_600_000
const few = 5
const mostShown = 50

/** NodePools, or the node groups of the Cluster Autoscaler mode. */
export function PoolsView(): JSX.Element {
  const groups = rowsOf('groups')
  return (
    <>
      {groups.length > 0 && <Groups groups={groups} />}
      {(groups.length === 0 || rowsOf('pools').length > 0) && <NodePools />}
    </>
  )
}

function Groups({ groups }: { readonly groups: readonly GroupRow[] }): JSX.Element {
  const matching = groups.filter(({ name }) => name.toLowerCase().includes(filterText().toLowerCase()))
  return (
    <section class="card" id="groups">
      <h2>Node groups</h2>
      {groups.length > few && (
        <div class="controls">
          <Filter />
        </div>
      )}
      <Table
        caption="Node groups"
        columns={groupColumns}
        rows={matching}
        rowKey={({ id }) => id}
        first={{ title: 'Group' }}
        empty="No node group matches the filter."
      />
    </section>
  )
}

const groupColumns: readonly Column<GroupRow>[] = [
  { title: 'Group', cell: ({ name }) => <Name name={name} most={80} />, order: ({ name }) => name },
  { title: 'Nodes', cell: ({ nodes }) => nodes ?? '', order: ({ nodes }) => nodes, isNumber: true },
  { title: 'Ready', cell: ({ ready }) => ready ?? '', order: ({ ready }) => ready, isNumber: true },
  {
    title: 'Target',
    cell: ({ targetSize }) => targetSize ?? '',
    order: ({ targetSize }) => targetSize,
    isNumber: true,
  },
  { title: 'Min', cell: ({ minSize }) => minSize ?? '', order: ({ minSize }) => minSize, isNumber: true },
  { title: 'Max', cell: ({ maxSize }) => maxSize ?? '', order: ({ maxSize }) => maxSize, isNumber: true },
  { title: 'State', cell: ({ state }) => state, order: ({ state }) => state },
  { title: 'Why', cell: ({ message }) => message ?? '', order: ({ message }) => message, isText: true },
]

/** Limits, budgets, rollouts, offerings, and refusals. */
function NodePools(): JSX.Element {
  const asked = useAnswer<PoolsAnswer>('/api/pools', versionOf('pools') + versionOf('claims'), 5000)
  return (
    <Answer asked={asked} awaits="limits, budgets and offerings of the NodePools">
      {({ atMs, currency = '', pools }) =>
        pools.length === 0 ? <Start /> : <Pools pools={pools} atMs={atMs} currency={currency} />
      }
    </Answer>
  )
}

/** More than a few NodePools can be filtered by name; many are not shown at once. */
function Pools({
  pools,
  atMs,
  currency,
}: {
  readonly pools: readonly PoolAnswer[]
  readonly atMs: number
  readonly currency: string
}): JSX.Element {
  const matching = pools.filter(({ explanation }) => explanation.name.includes(filterText().toLowerCase()))
  return (
    <>
      {pools.length > few && (
        <div class="controls">
          <Filter />
          <span class="quiet">
            {matching.length} of {pools.length} NodePools
          </span>
        </div>
      )}
      {matching.length === 0 && <p class="empty">No NodePool matches the filter.</p>}
      {matching.slice(0, mostShown).map((pool) => (
        <Pool key={pool.explanation.name} pool={pool} atMs={atMs} currency={currency} />
      ))}
      {matching.length > mostShown && <p>The first {mostShown} are shown; filter to find others.</p>}
    </>
  )
}

function Pool({
  pool: { budgets, explanation, offerings },
  atMs,
  currency,
}: {
  readonly pool: PoolAnswer
  readonly atMs: number
  readonly currency: string
}): JSX.Element {
  const { drift, limits, name, nodes, refused, summary, types } = explanation
  const row = rowsOf('pools').find((each) => each.name === name)
  return (
    <section class="card" id={`pool-${name}`}>
      <h2>
        <ObjectLink kind="NodePool" name={name} most={80} />
      </h2>
      <p>
        <Sentence text={summary} />
      </p>
      {row?.paused !== undefined && <p class="failure">Paused: {row.paused}</p>}
      {row?.halted !== undefined && <p class="failure">Rollout halted: {row.halted}</p>}
      <p>
        {counted(nodes, 'node')}
        {drift.total > 0 && `; ${drift.updated} of ${drift.total} updated`}
        {drift.fields.length > 0 && `, drifted by ${drift.fields.join(', ')}`}.{' '}
        {types.problem === undefined
          ? `${types.left} of ${types.offered} types meet the requirements, with ${explanation.offerings.left} offerings, ${explanation.offerings.available} to be had now.`
          : `Types are not known: ${types.problem}`}
      </p>
      {drift.total > 0 && (
        <progress max={drift.total} value={drift.updated} aria-label={`Nodes of ${name} that are updated`} />
      )}
      {limits.length > 0 && (
        <ul>
          {limits.map((limit) => (
            <li key={limit.resource}>
              Limit of {limit.resource}: {limit.used} used, {limit.reserved} reserved, of {limit.limit}
            </li>
          ))}
        </ul>
      )}
      <p class="buttons">
        <a class="button" href={`/what-if?nodepool=${encodeURIComponent(name)}`}>
          What if it changed?
        </a>
        <PauseButton nodePool={name} />
      </p>
      {budgets.length > 0 && (
        <>
          <h3>Budgets over the next 48 hours</h3>
          <p class="quiet">
            How many nodes may be disrupted at the same time. Windows are in UTC, as Karpenter's; times here
            are local, with UTC on hover.
          </p>
          <TimeAxis atMs={atMs} />
          {budgets.map(({ reason, steps }) => (
            <Timeline key={reason} reason={reason} steps={steps} atMs={atMs} total={nodes} />
          ))}
        </>
      )}
      {refused.length > 0 && (
        <>
          <h3>Refused in the last decision</h3>
          <ul>
            {refused.map((each) => (
              <li key={each.code}>
                {counted(each.pods, 'pod')}: <Sentence text={each.message} />
              </li>
            ))}
          </ul>
        </>
      )}
      <Offerings offerings={offerings} currency={currency} name={name} />
    </section>
  )
}

function TimeAxis({ atMs }: { readonly atMs: number }): JSX.Element {
  return (
    <div class="axis" aria-hidden="true">
      {[0, 12, 24, 36].map((hours) => {
        const ms = atMs + hours * 3_600_000
        return (
          <span key={hours} title={utcTime(ms)} style={{ left: `${(hours / 48) * 100}%` }}>
            {localTime(ms, true)}
          </span>
        )
      })}
    </div>
  )
}

function Timeline({
  reason,
  steps,
  atMs,
  total,
}: {
  readonly reason: string
  readonly steps: readonly BudgetStep[]
  readonly atMs: number
  readonly total: number
}): JSX.Element {
  const place = (ms: number) => Math.min(100, Math.max(0, ((ms - atMs) / timelineMs) * 100))
  const most = (allowed: number) => (allowed >= total ? 'all' : String(allowed))
  return (
    <div class="timeline">
      <span class="timeline-title">{reason}</span>
      <ol class="windows">
        {steps.map(({ allowed, fromMs, untilMs = Number.POSITIVE_INFINITY }) => {
          const left = place(fromMs)
          const width = place(untilMs) - left
          const until = untilMs === Number.POSITIVE_INFINITY ? '' : ` until ${localTime(untilMs, true)}`
          const text = `${most(allowed)} from ${localTime(Math.max(fromMs, atMs), true)}${until}`
          return (
            <li
              key={fromMs}
              class={allowed === 0 ? 'shut' : ''}
              style={{ left: `${left}%`, width: `${width}%` }}
              title={`${text} (${utcTime(fromMs)})`}
            >
              <span aria-hidden="true">{width > 4 ? most(allowed) : ''}</span>
              <span class="hidden">{text}</span>
            </li>
          )
        })}
      </ol>
    </div>
  )
}

function Offerings({
  offerings,
  currency,
  name,
}: {
  readonly offerings: readonly OfferingAnswer[]
  readonly currency: string
  readonly name: string
}): JSX.Element {
  const [filter, setFilter] = useState('')
  const rows = useMemo(
    () =>
      offerings.filter((each) =>
        `${each.instanceType} ${each.zone} ${each.capacityType} ${healthOf(each)}`
          .toLowerCase()
          .includes(filter.toLowerCase()),
      ),
    [offerings, filter],
  )
  const columns = useMemo(() => columnsOf(currency), [currency])
  return (
    <details>
      <summary>
        {offerings.length} offerings of all types, {offerings.filter(({ available }) => !available).length}{' '}
        not to be had now
      </summary>
      <div class="controls">
        <label>
          Filter
          <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
      </div>
      <Table
        caption={`Offerings of NodePool ${name}`}
        columns={columns}
        rows={rows}
        rowKey={(each) => `${each.instanceType}/${each.zone}/${each.capacityType}`}
        first={{ title: `Price/hour ${currency}` }}
        empty="No offering."
      />
    </details>
  )
}

function healthOf({ available, because }: OfferingAnswer): string {
  return available ? 'available' : (because ?? 'not to be had')
}

function columnsOf(currency: string): readonly Column<OfferingAnswer>[] {
  return [
    { title: 'Type', cell: (each) => <Name name={each.instanceType} />, order: (each) => each.instanceType },
    { title: 'Zone', cell: (each) => each.zone, order: (each) => each.zone },
    { title: 'Capacity type', cell: (each) => each.capacityType, order: (each) => each.capacityType },
    {
      title: `Price/hour ${currency}`,
      cell: (each) => priceText(each.pricePerHour),
      order: (each) => each.pricePerHour,
      isNumber: true,
    },
    {
      title: 'Health',
      cell: (each) =>
        `${healthOf(each)}${each.untilMs === undefined ? '' : `, next try at ${localTime(each.untilMs, true)}`}`,
      order: healthOf,
      isText: true,
    },
  ]
}
