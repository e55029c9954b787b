import { counted } from '@tenon/api/counted'
import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import { csvField, priceText, sumText } from '../format.ts'
import { Answer, useAnswer } from '../parts/answer.tsx'
import { saveText } from '../parts/copy.tsx'
import { Name } from '../parts/name.tsx'
import { NodeLink, ObjectLink, OwnerLink, PodLink } from '../parts/object-link.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { choose, chosen } from '../state/router.ts'
import { versionOf } from '../state/store.ts'
import { Spend } from './spend.tsx'

/** What `tenon cost -o json` prints. */
interface CostObject {
  readonly takenAt: string
  readonly by: string
  readonly currency?: string
  readonly groups: readonly CostGroup[]
  readonly idle: { readonly perHour: number; readonly perMonth: number }
  readonly total: { readonly perHour: number; readonly perMonth: number; readonly instances: number }
  readonly unpriced: readonly { readonly name: string; readonly type?: string }[]
}

interface CostGroup {
  readonly name?: string
  readonly instances?: number
  readonly pods: number
  readonly unpriced: number
  readonly requestedPerHour?: number
  readonly idlePerHour?: number
  readonly requestedPerMonth?: number
  readonly idlePerMonth?: number
}

const dimensions = [
  { name: 'nodepool', title: 'NodePool' },
  { name: 'namespace', title: 'Namespace' },
  { name: 'owner', title: 'Owner' },
  { name: 'type', title: 'Instance type' },
  { name: 'zone', title: 'Zone' },
] as const

export function CostView(): JSX.Element {
  const by = chosen('by') ?? 'nodepool'
  const asked = useAnswer<CostObject>(`/api/cost?by=${encodeURIComponent(by)}`, versionOf('nodes'), 3000)
  return (
    <>
      <Spend />
      <h2>Now</h2>
      <div class="controls">
        <label>
          By
          <select value={by} onChange={(event) => choose('by', event.currentTarget.value)}>
            {dimensions.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {asked.kind === 'answered' && (
          <button
            type="button"
            onClick={() => saveText(`cost-by-${asked.answer.by}.csv`, 'text/csv', csvOf(asked.answer))}
          >
            Export CSV
          </button>
        )}
      </div>
      <Answer asked={asked} awaits="the price of each instance and its shares">
        {(cost) => <Cost cost={cost} />}
      </Answer>
    </>
  )
}

function Cost({ cost }: { readonly cost: CostObject }): JSX.Element {
  const { currency = '', groups, idle, total, unpriced } = cost
  const columns = useMemo(() => columnsOf(cost), [cost])
  // No rows cost 0; rows of unknown price have an unknown sum.
  const known = (sumOfAll: number) =>
    unpriced.length > 0 && unpriced.length === total.instances ? undefined : sumOfAll
  return (
    <>
      <p class="big">
        <span data-test="cost">{sumText(known(total.perHour), unpriced.length)}</span>{' '}
        <small>{currency} per hour</small>
      </p>
      <p>
        {priceText(known(total.perMonth), 2)} {currency} per month of 730 h, for{' '}
        {counted(total.instances, 'instance')}.
        {cost.by === 'namespace' || cost.by === 'owner'
          ? ` Idle, and in no group: ${priceText(idle.perHour)} ${currency} per hour.`
          : ''}
      </p>
      {unpriced.length > 0 && (
        <p>
          ?{unpriced.length}: without a known price, in no sum:{' '}
          {unpriced.slice(0, 10).map(({ name, type }, at) => (
            <span key={name}>
              {at > 0 && ', '}
              <NodeLink name={name} /> (<Name name={type ?? '?'} />)
            </span>
          ))}
          {unpriced.length > 10 && ` and ${unpriced.length - 10} more`}
        </p>
      )}
      <Table
        caption={`Cost by ${cost.by}`}
        columns={columns}
        rows={groups}
        rowKey={({ name }) => name ?? ''}
        first={{ title: `${currency}/hour`, isDown: true }}
        empty="Nothing costs anything."
      />
    </>
  )
}

/** NodePools and owners have pages; owners are `namespace/kind/name`. */
function GroupName({ by, name }: { readonly by: string; readonly name: string | undefined }): JSX.Element {
  if (by === 'nodepool') return <ObjectLink kind="NodePool" name={name} most={60} none="<none>" />
  if (by !== 'owner' || name === undefined) return <Name name={name ?? '<none>'} most={60} />
  const [namespace = '', kind = '', ...own] = name.split('/')
  if (kind === 'pod') return <PodLink id={`${namespace}/${own.join('/')}`} most={60} />
  return (
    <>
      <Name name={namespace} />/
      <OwnerLink namespace={namespace} owner={`${kind}/${own.join('/')}`} most={60} />
    </>
  )
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b
}

function columnsOf({ by, currency = 'price' }: CostObject): readonly Column<CostGroup>[] {
  const price = (
    title: string,
    of: (group: CostGroup) => number | undefined,
    digits = 4,
  ): Column<CostGroup> => ({
    title,
    cell: (group) => priceText(of(group), digits),
    order: of,
    isNumber: true,
  })
  const { title } = dimensions.find(({ name }) => name === by) ?? { title: by }
  return [
    { title, cell: ({ name }) => <GroupName by={by} name={name} />, order: ({ name }) => name },
    ...(by === 'namespace' || by === 'owner'
      ? []
      : [
          {
            title: 'Instances',
            cell: (group: CostGroup) => group.instances ?? 0,
            order: (group: CostGroup) => group.instances,
            isNumber: true,
          },
        ]),
    { title: 'Pods', cell: ({ pods }) => pods, order: ({ pods }) => pods, isNumber: true },
    price('Requested', (group) => group.requestedPerHour),
    price('Idle', (group) => group.idlePerHour),
    price(`${currency}/hour`, (group) => sum(group.requestedPerHour, group.idlePerHour)),
    price(`${currency}/month`, (group) => sum(group.requestedPerMonth, group.idlePerMonth), 2),
    {
      title: 'Unpriced',
      cell: ({ unpriced }) => unpriced,
      order: ({ unpriced }) => unpriced,
      isNumber: true,
    },
  ]
}

function csvOf({ by, currency = '', groups, idle, takenAt, total }: CostObject): string {
  const known = (amount: number | undefined) => amount ?? 'unknown'
  const lines: (readonly (string | number)[])[] = [
    [
      by,
      'instances',
      'pods',
      'requested_per_hour',
      'idle_per_hour',
      'per_month',
      'unpriced',
      'currency',
      'taken_at',
    ],
    ...groups.map((group) => [
      group.name ?? '',
      group.instances ?? '',
      group.pods,
      known(group.requestedPerHour),
      known(group.idlePerHour),
      known(sum(group.requestedPerMonth, group.idlePerMonth)),
      group.unpriced,
      currency,
      takenAt,
    ]),
    ['<idle>', '', '', '', idle.perHour, idle.perMonth, '', currency, takenAt],
    ['TOTAL', total.instances, '', '', total.perHour, total.perMonth, '', currency, takenAt],
  ]
  return lines.map((line) => `${line.map(csvField).join(',')}\r\n`).join('')
}
