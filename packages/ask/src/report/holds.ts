/** What keeps Tenon from moving the pods of a node, and so from removing the node (adoption.md 1). */
import {
  annotations,
  kinds,
  labels,
  type NodePool,
  ownerOf,
  ownValue,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
} from '@tenon/api'
import { budgetsOf, doNotDisrupt, isHeldByBudget, isPausedByBudget } from '@tenon/operator/objects'
import { ofKind } from '../cost/priced.ts'
import type { ReportedCluster, ReportedNode } from './cluster.ts'

export const holdKinds = ['budget', 'doNotDisrupt', 'nodePool', 'localVolume'] as const
export type HoldKind = (typeof holdKinds)[number]

/** A node that stays, and why. */
export interface Hold {
  readonly kind: HoldKind
  readonly node: string
  /** Pods of the node that are held. */
  readonly pods: number
  /** What holds it, such as `PodDisruptionBudget shop/web`. */
  readonly by: string
}

/** Cluster Autoscaler's word for pods that must not be evicted. */
export const safeToEvict = 'cluster-autoscaler.kubernetes.io/safe-to-evict'

export function holdsOf({ nodes, snapshot }: ReportedCluster): readonly Hold[] {
  const budgets = ofKind(snapshot, kinds.podDisruptionBudget)
  const local = localClaims(
    ofKind(snapshot, kinds.persistentVolumeClaim),
    ofKind(snapshot, kinds.persistentVolume),
  )
  return nodes.flatMap((node) => [
    ...nodeHolds(node),
    ...node.pods.flatMap((pod) => podHolds(pod, node, { budgets, local, nowMs: snapshot.takenAtMs })),
  ])
}

function nodeHolds({ node, pool, pods }: ReportedNode): readonly Hold[] {
  const { name } = node.metadata
  const because = pool === undefined || pods.length === 0 ? undefined : keepsFullNodes(pool)
  return [
    ...(node.metadata.annotations?.[annotations.doNotDisrupt] === 'true'
      ? [{ kind: 'doNotDisrupt' as const, node: name, pods: pods.length, by: `Node ${name}` }]
      : []),
    ...(because === undefined
      ? []
      : [
          {
            kind: 'nodePool' as const,
            node: name,
            pods: pods.length,
            by: `NodePool ${pool?.metadata.name ?? ''}: ${because}`,
          },
        ]),
  ]
}

/** The setting by which a NodePool never removes a node with pods to save money; undefined if it does. */
function keepsFullNodes({ spec: { disruption = {} } }: NodePool): string | undefined {
  const { budgets = [], consolidateAfter, consolidationPolicy } = disruption
  if (consolidationPolicy === 'WhenEmpty') return 'consolidationPolicy: WhenEmpty'
  if (consolidateAfter === 'Never') return 'consolidateAfter: Never'
  const isShut = budgets.some(
    ({ nodes, schedule, reasons }) =>
      /^0+%?$/.test(nodes) && schedule === undefined && (reasons?.includes('Underutilized') ?? true),
  )
  return isShut ? 'a budget of 0 nodes at all times' : undefined
}

interface PodFacts {
  readonly budgets: readonly PodDisruptionBudget[]
  /** `namespace/name` of PersistentVolumeClaims on volumes of one node. */
  readonly local: ReadonlySet<string>
  readonly nowMs: number
}

function podHolds(pod: Pod, { node }: ReportedNode, { budgets, local, nowMs }: PodFacts): readonly Hold[] {
  const { name } = node.metadata
  const isShut = isPausedByBudget(pod, budgets, nowMs) || isHeldByBudget(pod, budgets, nowMs)
  const isPinned =
    doNotDisrupt(pod, nowMs).kind === 'active' || ownValue(pod.metadata.annotations, safeToEvict) === 'false'
  return [
    ...(isShut ? [{ kind: 'budget' as const, node: name, pods: 1, by: budgetNames(pod, budgets) }] : []),
    ...(isPinned ? [{ kind: 'doNotDisrupt' as const, node: name, pods: 1, by: workloadName(pod) }] : []),
    ...(claimKeys(pod).some((key) => local.has(key))
      ? [{ kind: 'localVolume' as const, node: name, pods: 1, by: workloadName(pod) }]
      : []),
  ]
}

function budgetNames(pod: Pod, budgets: readonly PodDisruptionBudget[]): string {
  const names = budgetsOf(pod, budgets).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)
  return `${names.length > 1 ? 'PodDisruptionBudgets' : 'PodDisruptionBudget'} ${names.toSorted().join(' and ')}`
}

/** Such as `Deployment shop/web`. */
export function workloadName(pod: Pod): string {
  const { kind, name } = ownerOf(pod)
  return `${kind} ${pod.metadata.namespace ?? ''}/${name}`
}

export function claimKeys({ metadata, spec }: Pod): readonly string[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim =
      persistentVolumeClaim?.claimName ?? (ephemeral == null ? undefined : `${metadata.name}-${name}`)
    return claim === undefined ? [] : [`${metadata.namespace ?? ''}/${claim}`]
  })
}

/** `namespace/name` of claims that are bound to a volume of a single node. */
export function localClaims(
  claims: readonly PersistentVolumeClaim[],
  volumes: readonly PersistentVolume[],
): ReadonlySet<string> {
  const local = new Set(volumes.filter(isLocal).map(({ metadata }) => metadata.name))
  return new Set(
    claims
      .filter(({ spec }) => local.has(spec?.volumeName ?? ''))
      .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`),
  )
}

function isLocal({ spec }: PersistentVolume): boolean {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return (
    spec.local !== undefined ||
    spec.hostPath !== undefined ||
    terms.some(({ matchExpressions = [], matchFields = [] }) =>
      [...matchExpressions, ...matchFields].some(
        ({ key }) => key === labels.hostname || key === 'metadata.name',
      ),
    )
  )
}
