/** NodePools for a cluster that has none, so that Tenon can plan its nodes (adoption.md 1). */
import {
  capacityTypes,
  type KubeObject,
  kinds,
  karpenterKinds,
  isKnownEphemeralTaint,
  labels,
  type Node,
  type NodePool,
  ownValue,
  type Pod,
  type ResourceType,
  type Taint,
  wellKnownLabels,
} from '@tenon/api'
import { ofKind } from '../cost/priced.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'

const nodeClassType: ResourceType = {
  group: 'report.tenon.sh',
  version: 'v1',
  kind: 'ReportNodeClass',
  plural: 'reportnodeclasses',
  namespaced: false,
}
const nodeClassName = 'report'
/** Taints that an autoscaler or a cloud controller sets for a while, or that mark a control plane. */
const foreignTaint =
  /^(node\.kubernetes\.io|node\.cloudprovider\.kubernetes\.io|node-role\.kubernetes\.io|karpenter\.sh)\/|^(ToBeDeletedBy|DeletionCandidateOf)/
/** Domains whose labels a NodePool may not set. */
const reservedDomain = /(^|\.)(kubernetes\.io|k8s\.io|karpenter\.sh)$/
const isObjectName = /^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$/

/**
 * The snapshot with a NodePool for each kind of node: nodes with the same taints and the same values of the labels
 * that pods ask for. Each may launch every known instance type, in the zones where the nodes are. Unchanged if the
 * cluster has NodePools.
 */
export function withNodePools(snapshot: Snapshot): Snapshot {
  if (ofKind(snapshot, karpenterKinds.nodePool).length > 0) return snapshot
  const nodes = ofKind(snapshot, kinds.node).filter((node) => !isControlPlane(node))
  const asked = [...labelsAskedFor(ofKind(snapshot, kinds.pod))].filter((key) => isSettable(key, snapshot))
  const groups = Map.groupBy(nodes, (node) => JSON.stringify([taintsOf(node), valuesOf(node, asked)]))
  const names = new Set<string>()
  const pools = Array.from(groups.values(), (alike) => poolFor(alike, asked, names, snapshot))
  const { cloud, catalogues, objects } = snapshot
  const nodeClass: KubeObject = {
    apiVersion: `${nodeClassType.group}/${nodeClassType.version}`,
    kind: nodeClassType.kind,
    metadata: { name: nodeClassName },
  }
  const [types] = catalogues
  return {
    ...snapshot,
    cloud: { ...cloud, nodeClasses: [nodeClassType] },
    catalogues:
      types === undefined ? [] : [{ ...types, nodePools: pools.map(({ metadata }) => metadata.name) }],
    objects: [...objects, nodeClass, ...pools],
  }
}

export function isControlPlane({ metadata }: Node): boolean {
  return ['control-plane', 'master'].some(
    (role) => ownValue(metadata.labels, `node-role.kubernetes.io/${role}`) !== undefined,
  )
}

/** The label of node groups, whoever runs them: `…/nodegroup`, `…/node-pool`, `…/nodepool-name` and the like. */
const groupLabel = /(^|[/-])(node-?|agent-?)(pool|group)(-name)?$/

/** The node group of a node without a NodePool, by the label that its cloud sets; undefined if there is none. */
export function nodeGroupOf(node: Pick<KubeObject, 'metadata'>): string | undefined {
  const found = Object.entries(node.metadata.labels ?? {}).find(
    ([key]) => key !== labels.nodePool && groupLabel.test(key),
  )
  return found?.[1]
}

function poolFor(
  alike: readonly Node[],
  asked: readonly string[],
  names: Set<string>,
  { takenAtMs }: Snapshot,
): NodePool {
  const [first] = alike
  const common = first === undefined ? {} : valuesOf(first, asked)
  const groups = new Set(alike.map(nodeGroupOf))
  const [group] = groups
  const wanted = groups.size === 1 && group !== undefined && isObjectName.test(group) ? group : 'general'
  let name = wanted
  for (let at = 2; names.has(name); at++) name = `${wanted}-${at}`
  names.add(name)
  const requirements = [labels.os, labels.arch, labels.zone].flatMap((key) => {
    const values = new Set(alike.flatMap(({ metadata }) => ownValue(metadata.labels, key) ?? []))
    return values.size === 0 ? [] : [{ key, operator: 'In' as const, values: [...values].toSorted() }]
  })
  // Nobody asked for nodes that the cloud may take back at any time.
  const sold = new Set(
    alike.map(({ metadata }) => ownValue(metadata.labels, labels.capacityType) ?? capacityTypes.onDemand),
  )
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: karpenterKinds.nodePool.kind,
    metadata: {
      name,
      uid: `report-${name}`,
      creationTimestamp: new Date(takenAtMs).toISOString(),
      generation: 1,
    },
    spec: {
      disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
      template: {
        metadata: { labels: common },
        spec: {
          nodeClassRef: { group: nodeClassType.group, kind: nodeClassType.kind, name: nodeClassName },
          requirements: [
            ...requirements,
            { key: labels.capacityType, operator: 'In', values: [...sold].toSorted() },
          ],
          ...(first !== undefined && { taints: taintsOf(first) }),
        },
      },
    },
    status: {
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'Ready',
          message: '',
          lastTransitionTime: new Date(takenAtMs).toISOString(),
        },
      ],
    },
  }
}

function taintsOf({ spec }: Node): readonly Taint[] {
  return (spec?.taints ?? [])
    .filter((taint) => !isKnownEphemeralTaint(taint) && !foreignTaint.test(taint.key))
    .map(({ key, value, effect }) => ({ key, effect, ...(value !== undefined && { value }) }))
}

function valuesOf({ metadata }: Node, keys: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = ownValue(metadata.labels, key)
      return value === undefined ? [] : [[key, value]]
    }),
  )
}

function isSettable(key: string, { cloud }: Snapshot): boolean {
  const domain = key.includes('/') ? (key.split('/')[0] ?? '') : ''
  return (
    !wellKnownLabels.includes(key) &&
    !cloud.wellKnownLabels.includes(key) &&
    !reservedDomain.test(domain) &&
    !(cloud.restrictedDomains ?? []).includes(domain)
  )
}

type RequiredTerms = NonNullable<
  NonNullable<
    NonNullable<Pod['spec']['affinity']>['nodeAffinity']
  >['requiredDuringSchedulingIgnoredDuringExecution']
>

/** Label keys of node selectors, node affinities and spread constraints. */
function labelsAskedFor(pods: readonly Pod[]): ReadonlySet<string> {
  const keys = new Set<string>()
  const note = (selector: RequiredTerms | undefined): void => {
    for (const term of selector?.nodeSelectorTerms ?? [])
      for (const { key } of term.matchExpressions ?? []) keys.add(key)
  }
  for (const { spec } of pods) {
    for (const key of Object.keys(spec.nodeSelector ?? {})) keys.add(key)
    const { nodeAffinity } = spec.affinity ?? {}
    note(nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution)
    for (const { preference } of nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      note({ nodeSelectorTerms: [preference] })
    for (const { topologyKey } of spec.topologySpreadConstraints ?? []) keys.add(topologyKey)
  }
  return keys
}
