import type { JSX } from 'preact'
import type { PageNodeRow } from '../../model/page-view.ts'
import { amountText, percentText, priceText, shareOf } from '../format.ts'
import { Name } from './name.tsx'
import { ObjectLink, Sentence } from './object-link.tsx'
import { Table, type Column } from './table.tsx'
import { Age } from './when.tsx'

/** The state as text, as colour alone is not accessible. */
export function stateText(row: PageNodeRow): string {
  const marks = [row.deleting && 'deleting', row.cordoned && 'cordoned', row.drifted && 'drifted'].filter(
    (each) => each !== false,
  )
  const condition = row.node === undefined ? `waits to be ${row.condition}` : row.condition
  return [condition, ...marks].join(', ')
}

const columns: readonly Column<PageNodeRow>[] = [
  {
    title: 'Name',
    cell: ({ node, nodeClaim }) =>
      node === undefined ? (
        <ObjectLink kind="NodeClaim" name={nodeClaim} />
      ) : (
        <ObjectLink kind="Node" name={node} />
      ),
    order: (row) => row.name,
  },
  {
    title: 'Pool',
    cell: (row) => <ObjectLink kind="NodePool" name={row.nodePool} />,
    order: (row) => row.nodePool,
  },
  { title: 'Type', cell: (row) => <Name name={row.instanceType ?? '?'} />, order: (row) => row.instanceType },
  { title: 'Zone', cell: (row) => <Name name={row.zone ?? '?'} />, order: (row) => row.zone },
  ...['cpu', 'memory'].map(
    (name): Column<PageNodeRow> => ({
      title: name === 'cpu' ? 'CPU' : 'Memory',
      cell: ({ resources }) =>
        `${amountText(name, resources[name]?.used)} / ${amountText(name, resources[name]?.allocatable)} (${percentText(resources[name]?.used, resources[name]?.allocatable)})`,
      order: ({ resources }) => shareOf(resources[name]?.used, resources[name]?.allocatable),
      isNumber: true,
    }),
  ),
  {
    title: 'Pods',
    cell: (row) => `${row.pods ?? '?'}/${row.podsMax ?? '?'}`,
    order: (row) => row.pods,
    isNumber: true,
  },
  {
    title: 'Price/hour',
    cell: (row) => priceText(row.pricePerHour),
    order: (row) => row.pricePerHour,
    isNumber: true,
  },
  {
    title: 'State',
    cell: (row) => (
      <>
        {stateText(row)}{' '}
        <span class="quiet">
          <Age since={row.conditionSince} />
        </span>
      </>
    ),
    order: stateText,
  },
  {
    title: 'Why kept',
    cell: (row) => <Sentence text={row.why?.message ?? ''} />,
    order: (row) => row.why?.message,
    isText: true,
  },
]

const claimColumn: Column<PageNodeRow> = {
  title: 'NodeClaim',
  cell: ({ nodeClaim }) => <ObjectLink kind="NodeClaim" name={nodeClaim} />,
  order: ({ nodeClaim }) => nodeClaim,
}

/** Of a NodePool, whose name all rows would repeat. */
const columnsOfPool = columns.map((column) => (column.title === 'Pool' ? claimColumn : column))

/** Nodes, and NodeClaims without one. */
export function NodeTable({
  rows,
  isOfPool = false,
}: {
  readonly rows: readonly PageNodeRow[]
  readonly isOfPool?: boolean
}): JSX.Element {
  return (
    <Table
      caption="Nodes"
      columns={isOfPool ? columnsOfPool : columns}
      rows={rows}
      rowKey={(row) => row.id}
      first={{ title: 'Name' }}
    />
  )
}

/** The contents of a node, in one line. */
export function factsOf(row: PageNodeRow): string {
  const { cpu, memory } = row.resources
  return [
    stateText(row),
    `CPU ${amountText('cpu', cpu?.used)} of ${amountText('cpu', cpu?.allocatable)} (${percentText(cpu?.used, cpu?.allocatable)})`,
    `memory ${amountText('memory', memory?.used)} of ${amountText('memory', memory?.allocatable)} (${percentText(memory?.used, memory?.allocatable)})`,
    `${row.pods ?? '?'} of ${row.podsMax ?? '?'} pods`,
  ].join(' · ')
}
