/** Nodes: kubectl's columns, what is asked for of what there is, the price, and why each is kept. */
import { accumulate, labels, type Node, podRequests } from '@tenon/api'
import {
  amountOf,
  cores,
  framed,
  labelOf,
  mebibytes,
  none,
  priceColumn,
  type TableOf,
  typeColumns,
  whyColumn,
  whyTextColumn,
} from './cells.ts'
import type { Facts } from './facts.ts'

export const nodeTable: TableOf<Node> = (facts) =>
  framed(facts, [
    { title: 'STATUS', value: statusOf },
    { title: 'ROLES', value: rolesOf },
    { title: 'VERSION', value: ({ status }) => status?.nodeInfo?.kubeletVersion ?? none },
    {
      title: 'CPU',
      value: (node) => cores(requestedOn(node, facts)['cpu'], amountOf(node.status?.allocatable, 'cpu')),
    },
    {
      title: 'MEMORY',
      value: (node) =>
        mebibytes(requestedOn(node, facts)['memory'], amountOf(node.status?.allocatable, 'memory')),
    },
    priceColumn(facts),
    whyColumn(facts),
    ...typeColumns.map((column) => ({ ...column, isWide: true as const })),
    { title: 'NODEPOOL', value: (node) => labelOf(node, labels.nodePool), isWide: true },
    whyTextColumn(facts),
  ])

function statusOf({ spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  const word = ready === undefined ? 'Unknown' : ready === 'True' ? 'Ready' : 'NotReady'
  return spec?.unschedulable === true ? `${word},SchedulingDisabled` : word
}

const rolePrefix = 'node-role.kubernetes.io/'

function rolesOf({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix)) return [key.slice(rolePrefix.length)]
    return key === 'kubernetes.io/role' && value !== '' ? [value] : []
  })
  return roles.length === 0 ? none : roles.toSorted().join(',')
}

/** Nothing is known of a node whose pods could not be read. */
function requestedOn(
  { metadata }: Node,
  facts: Facts,
): { readonly cpu?: number | undefined; readonly memory?: number | undefined } {
  const pods = facts.podsOn(metadata.name)
  if (pods === undefined) return {}
  const [sum, running] = [
    { cpu: 0, memory: 0 },
    pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed'),
  ]
  for (const { spec, status } of running) accumulate(sum, podRequests(spec, status))
  return sum
}
