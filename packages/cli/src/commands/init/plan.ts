/** Plans NodePools and node classes for the node groups and pending pods of a cluster. */
import { type InstanceType, ownValue, type Pod } from '@tenon/api'
import type { ExistingGroup } from '@tenon/provider'
import type { GroupBounds, Plan, PlannedNodeClass, PlannedPool, SeenCluster } from './model.ts'
import { withNeighbours } from './neighbours.ts'
import { cheapestFor, isAccepted, isRoomFor, type PoolShape, unmetSelectors } from './pending.ts'

/** Name of the pool for pods that no group's pool accepts. */
const generalName = 'general'
const longestName = 63

/** A pool to which types for pending pods can still be added. */
interface Draft extends PoolShape {
  readonly name: string
  readonly remarks: string[]
  readonly instanceTypes: string[]
  /** Why these types: sentences. */
  readonly reasons: string[]
  readonly nodeClassSpec: object
  readonly cpuLimit: number | undefined
}

/** Deterministic: groups keep their order. */
export function planOf(cluster: SeenCluster): Plan {
  const names = new Names()
  const drafts = cluster.groups.map((group) => draftOf(group, cluster, names))
  const remarks = [...cluster.remarks, ...boundRemarks(cluster)]
  for (const pod of cluster.pending) remarks.push(...placed(pod, drafts, cluster, names))
  const classes = new NodeClassNames()
  const pools = drafts.map(
    ({ nodeClassSpec, reasons, cpuLimit, ...draft }): PlannedPool => ({
      ...draft,
      aboutTypes: reasons.join(' '),
      nodeClassName: classes.nameOf(nodeClassSpec, draft.name),
      ...(cpuLimit !== undefined && { cpuLimit }),
    }),
  )
  return {
    title: cluster.title,
    nodeClass: cluster.nodeClass,
    nodeClasses: classes.all(),
    pools,
    remarks: [...new Set(remarks)],
  }
}

function draftOf(group: ExistingGroup, cluster: SeenCluster, names: Names): Draft {
  const { types, isOwnLabel } = cluster
  const kept = Object.entries(group.labels).filter(([key]) => isOwnLabel(key))
  const dropped = Object.keys(group.labels).filter((key) => !isOwnLabel(key))
  const bounds = boundsOf(group, cluster.bounds)
  const min = bounds?.min ?? group.minSize ?? 0
  const max = bounds?.max ?? group.maxSize
  const instanceTypes = withNeighbours(group.instanceType, types)
  const cpu = ownValue(types.find(({ name }) => name === group.instanceType)?.capacity ?? {}, 'cpu')
  const size = group.size === undefined ? '' : ` with ${group.size} ${group.size === 1 ? 'node' : 'nodes'}`
  return {
    name: names.free(group.name),
    labels: Object.fromEntries(kept),
    taints: group.taints,
    remarks: [
      `From ${group.source} ${group.name}${size}.`,
      ...(dropped.length === 0
        ? []
        : [`Labels that a NodePool cannot set are not copied: ${dropped.join(', ')}.`]),
      ...(min > 0
        ? [
            `The group keeps at least ${min} ${min === 1 ? 'node' : 'nodes'}; a NodePool has as many as its pods need, down to none.`,
          ]
        : []),
      ...group.remarks,
    ],
    instanceTypes: [...instanceTypes],
    reasons: [aboutTypes(group.instanceType, instanceTypes)],
    nodeClassSpec: group.nodeClassSpec,
    cpuLimit: max === undefined || cpu === undefined ? undefined : Math.ceil((max * cpu) / 1000),
  }
}

function aboutTypes(inUse: string, all: readonly string[]): string {
  return all.length === 1
    ? `${inUse} is in use; no other type is next to it.`
    : `${inUse} is in use; the next smaller and larger types let Tenon choose the cheapest for the pods that wait.`
}

/** Limits from `--nodes`. */
function boundsOf(group: ExistingGroup, bounds: readonly GroupBounds[]): GroupBounds | undefined {
  return bounds.find(({ name }) => name === group.name || group.otherNames.includes(name))
}

function boundRemarks({ groups, bounds }: SeenCluster): readonly string[] {
  const known = new Set(groups.flatMap(({ name, otherNames }) => [name, ...otherNames]))
  return bounds
    .filter(({ name }) => !known.has(name))
    .map(
      ({ min, max, name }) =>
        `Cluster Autoscaler has --nodes=${min}:${max}:${name}, but no such group was found: write its limits yourself.`,
    )
}

/**
 * Makes sure that some pool has a type for the pod.
 * @returns what is not possible.
 */
function placed(pod: Pod, drafts: Draft[], cluster: SeenCluster, names: Names): readonly string[] {
  const { types, daemonRequests } = cluster
  const accepting = drafts.filter((draft) => isAccepted(pod, draft))
  const isServed = accepting.some((draft) =>
    draft.instanceTypes.some((name) => {
      const type = types.find((each) => each.name === name)
      return type !== undefined && isServedBy(pod, draft, type, cluster)
    }),
  )
  if (isServed) return []
  const what = `pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`
  for (const draft of accepting) {
    const type = cheapestFor(pod, draft, types, daemonRequests)
    if (type === undefined || !isWithinLimit(type, draft)) continue
    draft.instanceTypes.push(type.name)
    draft.reasons.push(`${type.name} is there for the pending ${what}, which fits none of the others.`)
    return []
  }
  const plain = { labels: {}, taints: [] }
  const type = cheapestFor(pod, plain, types, daemonRequests)
  if (type === undefined) return [unplaced(pod, what, drafts, types)]
  drafts.push(generalDraft(type, what, cluster, names))
  return []
}

function isServedBy(pod: Pod, draft: Draft, type: InstanceType, { daemonRequests }: SeenCluster): boolean {
  return isRoomFor(pod, type, daemonRequests) && unmetSelectors(pod, draft, type).length === 0
}

function isWithinLimit({ capacity }: InstanceType, { cpuLimit }: Draft): boolean {
  return cpuLimit === undefined || (ownValue(capacity, 'cpu') ?? 0) <= cpuLimit * 1000
}

function unplaced(pod: Pod, what: string, drafts: readonly Draft[], types: readonly InstanceType[]): string {
  const shape = drafts[0] ?? { labels: {}, taints: [] }
  const unmet = types.map((type) => unmetSelectors(pod, shape, type))
  const fewest = unmet.toSorted((a, b) => a.length - b.length)[0] ?? []
  return fewest.length > 0
    ? `No NodePool here is for the pending ${what}: it selects ${fewest.join(', ')}, which no group has.`
    : `No NodePool here is for the pending ${what}: no instance type holds its requests.`
}

function generalDraft(type: InstanceType, what: string, cluster: SeenCluster, names: Names): Draft {
  const instanceTypes = withNeighbours(type.name, cluster.types)
  return {
    name: names.free(generalName),
    labels: {},
    taints: [],
    remarks: [`For pods that no group takes, such as the pending ${what}.`],
    instanceTypes: [...instanceTypes],
    reasons: [
      `${type.name} is the cheapest for that pod; the next smaller and larger types are there for others.`,
    ],
    nodeClassSpec: cluster.nodeClassSpecOf(type.name),
    cpuLimit: undefined,
  }
}

/** Generates unique object names. */
class Names {
  readonly #taken = new Set<string>()

  free(wanted: string): string {
    const plain = wanted
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, '-')
      .slice(0, longestName)
      .replaceAll(/^-+|-+$/g, '')
    const start = plain === '' ? 'pool' : plain
    let name = start
    for (let number = 2; this.#taken.has(name); number++)
      name = `${start.slice(0, longestName - String(number).length - 1)}-${number}`
    this.#taken.add(name)
    return name
  }
}

/** Gives pools with equal settings the same node class. */
class NodeClassNames {
  readonly #classes = new Map<string, PlannedNodeClass>()

  nameOf(spec: object, poolName: string): string {
    const key = JSON.stringify(spec)
    const known = this.#classes.get(key)
    if (known !== undefined) return known.name
    // The pool's name is unique, so it can be used for the node class too.
    const name = this.#classes.size === 0 ? 'default' : poolName === 'default' ? 'default-pool' : poolName
    this.#classes.set(key, { name, spec })
    return name
  }

  all(): readonly PlannedNodeClass[] {
    return [...this.#classes.values()]
  }
}
