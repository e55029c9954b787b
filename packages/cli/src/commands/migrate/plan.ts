/** What a migration would do, before it does it (adoption.md 2). */
import { counted, kinds, labels, type Node, type Pod } from '@tenon/api'
import { type Move, simulateMove, type Snapshot } from '@tenon/ask'
import type { KubeClient } from '@tenon/kube'
import { isReschedulable, keyOf } from '@tenon/operator/objects'
import type { NodeGroups } from '@tenon/provider'
import { tableLines } from '../../kubectl/output/table.ts'
import { addedTable, sumText, tableText } from '../simulate/print.ts'
import { listHoldFacts } from './holds.ts'
import { markOf } from './marks.ts'
import { byTurn, fewNames, holdTexts, type Turn, turnOf } from './move.ts'
import type { StayingNode } from './progress.ts'

export interface Plan {
  readonly from: string
  readonly to: string
  /** In the order in which they are drained, with the pods that move. */
  readonly turns: readonly { readonly node: string; readonly pods: readonly string[] }[]
  readonly staying: readonly StayingNode[]
  /** Nodes that the target gets before, such as members of a node group. */
  readonly coming: readonly Node[]
  readonly move: Move
  /** Pods that lose the files of an emptyDir. */
  readonly losing: readonly string[]
  readonly priceUnit: string | undefined
}

export interface PlanFacts {
  readonly client: Pick<KubeClient, 'list'>
  readonly nowMs: number
  readonly signal: AbortSignal
  readonly snapshot: Snapshot
  readonly from: string
  readonly to: string
  readonly members: readonly Node[]
  readonly coming?: readonly Node[]
  /** NodePool that launches nothing. */
  readonly pausedPool?: string
}

export async function migrationPlan(facts: PlanFacts): Promise<Plan> {
  const { client, nowMs, signal, snapshot, from, to, members, coming = [], pausedPool } = facts
  const kept = members.filter((node) => markOf(node) === 'kept')
  const going = members.filter((node) => !kept.includes(node))
  const leaving = new Set(going.map(({ metadata }) => metadata.name))
  const move = await simulateMove(snapshot, {
    leaving,
    coming,
    ...(pausedPool !== undefined && { pausedPool }),
  })
  const holds = await listHoldFacts(client, move.homeless, nowMs, signal)
  const podsOf = Map.groupBy(await client.list(kinds.pod, { signal }), ({ spec }) => spec.nodeName ?? '')
  const moving = ({ metadata }: Node) => (podsOf.get(metadata.name) ?? []).filter(isReschedulable)
  const turns: Turn[] = []
  const staying: StayingNode[] = kept.map(({ metadata }) => ({
    node: metadata.name,
    reasons: ['a person has uncordoned it'],
  }))
  for (const node of going) {
    const pods = podsOf.get(node.metadata.name) ?? []
    const reasons = holdTexts(pods, holds)
    if (reasons.length > 0) staying.push({ node: node.metadata.name, reasons })
    else turns.push(turnOf(node, pods))
  }
  const ordered = turns.toSorted(byTurn).map(({ node }) => node)
  return {
    from,
    to,
    turns: ordered.map((node) => ({
      node: node.metadata.name,
      pods: moving(node).map(({ metadata }) => keyOf(metadata)),
    })),
    staying,
    coming,
    move,
    losing: ordered.flatMap(moving).flatMap((pod) => (hasScratch(pod) ? [keyOf(pod.metadata)] : [])),
    priceUnit: snapshot.cloud.priceUnit,
  }
}

export function planText(plan: Plan): string {
  const { coming, from, losing, move, priceUnit, staying, to, turns } = plan
  const pods = turns.flatMap((turn) => turn.pods)
  const onNew = pods.filter((name) => !move.onNodes.has(name) && !move.homeless.has(name)).length
  const rows = [
    ...turns.map(
      ({ node, pods: own }, at) => [String(at + 1), node, String(own.length), fewNames(own)] as const,
    ),
    ...staying.map(({ node, reasons }) => ['stays', node, '', reasons.join('; ')] as const),
  ]
  const table = tableText(
    tableLines<(typeof rows)[number]>(
      [
        { title: 'TURN', value: ([turn]) => turn },
        { title: 'NODE', value: ([, node]) => node },
        { title: 'PODS', value: ([, , count]) => count },
        { title: 'WHICH PODS, OR WHY IT STAYS', value: ([, , , text]) => text },
      ],
      rows,
    ),
  )
  const lines = [
    `${counted(turns.length, 'node')} of ${from} ${turns.length === 1 ? 'goes' : 'go'}, ${staying.length} ${staying.length === 1 ? 'stays' : 'stay'}. Their pods move to ${to}.`,
    ...(rows.length === 0 ? [] : ['', table, '']),
    ...(coming.length === 0 ? [] : [`Nodes that ${to} gets before: ${coming.length}`]),
    `Pods that move: ${pods.length}, ${onNew} of them to new nodes of NodePools`,
    ...(losing.length === 0
      ? []
      : [`Pods that lose the files of an emptyDir: ${losing.length} (${fewNames(losing)})`]),
    `Price per hour: ${sumText(move.priceBefore, priceUnit)} of nodes that go, ${sumText(move.priceAfter, priceUnit)} of new ones`,
    ...(move.added.length === 0 ? [] : ['', addedTable(move.added)]),
  ]
  return `${lines.join('\n')}\n`
}

/** Nodes as a group will get them: like one that it has, else as the cloud describes them. */
export async function comingNodes(
  groups: NodeGroups,
  groupId: string,
  members: readonly Node[],
  count: number,
  signal: AbortSignal,
): Promise<readonly Node[]> {
  const [member] = members
  const model = member ?? (await groups.exampleNode?.(groupId, signal))?.node
  if (model === undefined) return []
  return Array.from({ length: Math.max(0, count) }, (_, at) => likeModel(model, `coming-${at + 1}`))
}

function likeModel({ metadata, spec, status }: Node, name: string): Node {
  const own = { ...metadata.labels, [labels.hostname]: name }
  const taints = (spec?.taints ?? []).filter(({ key }) => !key.startsWith('node.kubernetes.io/'))
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, labels: own },
    spec: { providerID: `coming://${name}`, taints },
    status: { ...status },
  }
}

function hasScratch({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some((volume) => volume.emptyDir != null)
}
