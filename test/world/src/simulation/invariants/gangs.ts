/** Gangs get all of their nodes or none, and running gangs are not broken up (gangs.md 7). */
import {
  isConditionTrue,
  type Node,
  type NodeClaim,
  parseResources,
  type Pod,
  type PodGroup,
} from '@tenon/api'
import type { World } from '../../world.ts'
import { podGroupKind } from '../workload/gangs.ts'
import { disruptionReasonOf, isOfDaemonSet, isVoluntary } from './pods.ts'
import { annotation, type ApiWrite, type Invariant, type Scene } from './scene.ts'

const minute = 60_000
/** The nodes of half a gang are released two minutes after the first failure or loss. */
const holdMs = 2 * minute
/** Allows for a lost leader, the start of the next one, failed requests, and the minute between two checks. */
const delayMs = { calm: 2 * minute, faulty: 6 * minute } as const

const isTerminal = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed'
const isLeaving = ({ metadata }: Pod | NodeClaim): boolean => metadata.deletionTimestamp !== undefined
const isBound = ({ spec }: Pod): boolean => (spec.nodeName ?? '') !== ''
const isGated = ({ spec }: Pod): boolean => (spec.schedulingGates ?? []).length > 0

/** A PodGroup with its pods and nodes. */
interface Gang {
  readonly key: string
  readonly minCount: number
  /** Pods that have neither terminated nor are terminating. */
  readonly members: readonly Pod[]
  readonly bound: readonly Pod[]
}

function gangsIn(world: World): readonly Gang[] {
  const { local } = world.cluster.server
  const groups = podGroupKind.flatMap((type) => local.list(type))
  if (groups.length === 0) return []
  const pods = Map.groupBy(world.pods(), groupKeyOf)
  return groups.flatMap((group) => {
    const minCount = minCountOf(group)
    if (minCount === undefined) return []
    const key = keyOf(group.metadata)
    const members = (pods.get(key) ?? []).filter((pod) => !isTerminal(pod) && !isLeaving(pod))
    return [{ key, minCount, members, bound: members.filter(isBound) }]
  })
}

/** Undefined for groups whose pods run independently. */
const minCountOf = ({ spec }: PodGroup): number | undefined => spec?.schedulingPolicy?.gang?.minCount

const keyOf = ({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string =>
  `${namespace}/${name}`

function groupKeyOf({ metadata, spec }: Pod): string {
  const name = spec.schedulingGroup?.podGroupName ?? ''
  return name === '' ? '' : keyOf({ ...metadata, name })
}

/** UID prefixes of the pods that a claim was created for. */
const plannedOn = (claim: NodeClaim): readonly string[] =>
  annotation(claim, 'tenon.sh/planned-pods')?.split(',') ?? []

const partOf = ({ metadata }: Pod): string => (metadata.uid ?? '').slice(0, 13)

/** Whether the claim is annotated as waiting for a gang of this name. */
const waitsFor = (claim: NodeClaim, key: string): boolean =>
  (annotation(claim, 'tenon.sh/group') ?? '')
    .split(',')
    .some((each) => each.startsWith(`podgroups.scheduling.k8s.io/${key}@`))

/** No claims are kept for a gang that can never be complete. */
export const gangsWholeOrReleased: Invariant = (scene) => {
  const { world, clock, violate, blindMs } = scene
  const shortSince = new Map<string, number>()
  const boundMs = holdMs + (blindMs > 10_000 ? delayMs.faulty : delayMs.calm)
  return {
    minute() {
      const gangs = gangsIn(world)
      const claims = gangs.length === 0 ? [] : world.claims().filter((claim) => !isLeaving(claim))
      const now = clock.monotonic()
      const short = new Set<string>()
      for (const gang of gangs) {
        const own = claimsOf(gang, claims)
        if (own.length === 0 || !isShort(scene, gang, own)) continue
        short.add(gang.key)
        const since = shortSince.get(gang.key) ?? now
        shortSince.set(gang.key, since)
        if (now - since > boundMs)
          violate(
            'gangsWholeOrReleased',
            `${own.length} NodeClaim(s) are kept for ${gang.key}, of which ${gang.minCount} pods must run together: ${named(own)}`,
          )
      }
      for (const key of shortSince.keys()) if (!short.has(key)) shortSince.delete(key)
    },
  }
}

/** Claims with an instance that were created for pods of the gang, or that wait for it. */
function claimsOf({ key, members }: Gang, claims: readonly NodeClaim[]): readonly NodeClaim[] {
  const waiting = new Set(members.filter((pod) => !isBound(pod)).map(partOf))
  return claims.filter(
    (claim) =>
      isConditionTrue(claim, 'Launched') &&
      (waitsFor(claim, key) || plannedOn(claim).some((part) => waiting.has(part))),
  )
}

/** Whether fewer pods of the gang than required run, have a node in progress, or fit on existing nodes. */
function isShort(scene: Scene, { minCount, members, bound }: Gang, own: readonly NodeClaim[]): boolean {
  const { world } = scene
  if (bound.length >= minCount) return false
  const planned = new Set(own.flatMap(plannedOn))
  const waiting = members.filter((pod) => !isBound(pod) && !isGated(pod))
  const onTheirWay = waiting.filter((pod) => planned.has(partOf(pod)))
  const others = waiting.filter((pod) => !planned.has(partOf(pod)))
  const missing = minCount - bound.length - onTheirWay.length
  if (missing <= 0) return false
  if (others.length < missing) return true
  return roomFor(world.nodes(), scene.podsOn, others) < missing
}

/** How many of the pods fit on open nodes, one after the other. */
function roomFor(nodes: readonly Node[], podsOn: Scene['podsOn'], pods: readonly Pod[]): number {
  const free = nodes
    .filter(({ spec }) => (spec?.taints ?? []).length === 0 && spec?.unschedulable !== true)
    .map((node) => {
      const { cpu = 0, memory = 0 } = parseResources(node.status?.allocatable)
      const used = podsOn(node.metadata.name)
        .filter((pod) => !isTerminal(pod))
        .map(amountsOf)
      return {
        cpu: used.reduce((left, amounts) => left - amounts.cpu, cpu),
        memory: used.reduce((left, amounts) => left - amounts.memory, memory),
      }
    })
  let found = 0
  for (const pod of pods) {
    const amounts = amountsOf(pod)
    const room = free.find(({ cpu, memory }) => cpu >= amounts.cpu && memory >= amounts.memory)
    if (room === undefined) continue
    room.cpu -= amounts.cpu
    room.memory -= amounts.memory
    found++
  }
  return found
}

function amountsOf({ spec }: Pod): { readonly cpu: number; readonly memory: number } {
  const parsed = spec.containers.map(({ resources }) => parseResources(resources?.requests))
  const sum = (name: 'cpu' | 'memory') => parsed.reduce((total, requests) => total + (requests[name] ?? 0), 0)
  return { cpu: sum('cpu'), memory: sum('memory') }
}

/** Voluntary disruption does not take required pods of a gang, unless the gang moves as a whole. */
export const runningGangsKept: Invariant = (scene) => {
  const { world, blindMs, violate, podsOn, boundMs, nodeByName, claimByProviderId } = scene
  const claimOf = ({ spec }: Pod): NodeClaim | undefined =>
    claimByProviderId(nodeByName(spec.nodeName ?? '')?.spec?.providerID ?? '')
  /** By key of a gang: names of the claims that it leaves as a whole. Those whose DELETE failed are deleted later. */
  const left = new Map<string, ReadonlySet<string>>()
  return {
    apiWrite(write) {
      const gone = deletedBy(scene, write)
      if (gone === undefined || disruptionReasonOf(gone.claim) === undefined) return
      const here = new Set(podsOn(gone.node.metadata.name).map(groupKeyOf))
      here.delete('')
      if (here.size === 0) return
      for (const { key, minCount, bound } of gangsIn(world)) {
        if (!here.has(key) || left.get(key)?.has(gone.claim.metadata.name) === true) continue
        const staying = bound.flatMap((pod) => {
          const claim = claimOf(pod)
          return claim === undefined || isLeaving(claim) ? [] : [{ pod, claim }]
        })
        const own = staying.filter(({ pod }) => pod.spec.nodeName === gone.node.metadata.name)
        const isNews = own.some(({ pod }) => boundMs(pod) <= blindMs)
        if (own.length === 0 || isNews || staying.length < minCount) continue
        if (staying.every(({ claim }) => isVoluntary(claim)))
          left.set(key, new Set(staying.map(({ claim }) => claim.metadata.name)))
        else if (staying.length - own.length < minCount)
          violate(
            'runningGangsKept',
            `NodeClaim ${gone.claim.metadata.name} is disrupted with ${own.length} of ${staying.length} pods of ${key}, of which ${minCount} must run together`,
          )
      }
    },
  }
}

/** Claims that are released for a gang do not run pods of others. */
export const strangersKept: Invariant = (scene) => ({
  apiWrite(write) {
    const gone = deletedBy(scene, write)
    if (gone === undefined) return
    const { clock, blindMs, violate, podsOn, boundMs } = scene
    const { claim, node } = gone
    const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
    const isGivenBack =
      annotation(claim, 'tenon.sh/group') !== undefined &&
      disruptionReasonOf(claim) === undefined &&
      ready?.status === 'True' &&
      clock.now() - Date.parse(claim.metadata.creationTimestamp ?? '') < youngMs
    if (!isGivenBack) return
    const left = podsOn(node.metadata.name).find(
      (pod) => !isTerminal(pod) && !isLeaving(pod) && !isOfDaemonSet(pod) && boundMs(pod) > blindMs,
    )
    if (left !== undefined)
      violate(
        'strangersKept',
        `NodeClaim ${claim.metadata.name} is given back with its gang under pod ${left.metadata.name}`,
      )
  },
})

/** In pools that limit their age, claims live for at least twenty minutes. */
const youngMs = 19 * minute

/** All nodes of a gang accept pods at the same time. */
export const gangNodesOpenTogether: Invariant = (scene) => ({
  node(now, before) {
    if (now === undefined || before === undefined) return
    if (!isClosed(before) || isClosed(now)) return
    const { world, clock, violate, claimByProviderId, nodeByProviderId } = scene
    const claim = claimByProviderId(now.spec?.providerID ?? '')
    if (claim === undefined || isOverdue(claim, clock.now())) return
    const planned = new Set(plannedOn(claim))
    for (const gang of gangsIn(world)) {
      const { key, minCount, members, bound } = gang
      // Members beyond the minimum may start one by one.
      if (bound.length > 0 || members.length > minCount) continue
      if (!members.some((pod) => planned.has(partOf(pod)))) continue
      // A node that waits for another gang opens with that one; a gang that was given up may be planned onto it
      // again.
      if (annotation(claim, 'tenon.sh/group') !== undefined && !waitsFor(claim, key)) continue
      const late = claimsOf(gang, world.claims()).find((each) => {
        const node = nodeByProviderId(each.status?.providerID ?? '')
        return !isLeaving(each) && (node === undefined || !isReady(node))
      })
      if (late !== undefined)
        violate(
          'gangNodesOpenTogether',
          `node ${now.metadata.name} opens for ${key} before the node of NodeClaim ${late.metadata.name} is there`,
        )
    }
  },
})

const isClosed = ({ spec }: Node): boolean =>
  (spec?.taints ?? []).some(({ key }) => key === 'karpenter.sh/unregistered')
const isReady = ({ status }: Node): boolean =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True'
/** Nodes whose registration takes about as long as allowed open alone. */
const isOverdue = ({ metadata }: NodeClaim, nowMs: number): boolean =>
  nowMs - Date.parse(metadata.creationTimestamp ?? '') > 13 * minute

/** The node and claim that a write begins to delete. */
function deletedBy(
  { claimByName, nodeByProviderId }: Scene,
  { method, plural, name = '' }: ApiWrite,
): { readonly claim: NodeClaim; readonly node: Node } | undefined {
  if (method !== 'DELETE' || plural !== 'nodeclaims') return undefined
  const claim = claimByName(name)
  const node = nodeByProviderId(claim?.status?.providerID ?? '')
  return claim === undefined || node === undefined || isLeaving(claim) ? undefined : { claim, node }
}

/** What is wrong with gangs once everything else has settled. */
export function gangTrouble(world: World): readonly string[] {
  const waiting = world.claims().filter((claim) => annotation(claim, 'tenon.sh/group') !== undefined)
  return waiting.length === 0 ? [] : [`${waiting.length} NodeClaim(s) wait for a gang: ${named(waiting)}`]
}

/** Whether a pod waits because its gang has fewer pods than required. */
export function lacksMembers(world: World): (pod: Pod) => boolean {
  const counts = new Map<string, number>()
  for (const pod of world.pods())
    if (!isTerminal(pod)) counts.set(groupKeyOf(pod), (counts.get(groupKeyOf(pod)) ?? 0) + 1)
  const minCounts = new Map<string, number>()
  for (const type of podGroupKind)
    for (const group of world.cluster.server.local.list(type))
      minCounts.set(keyOf(group.metadata), minCountOf(group) ?? 0)
  return (pod) => {
    const key = groupKeyOf(pod)
    if (key === '') return false
    const minCount = minCounts.get(key)
    return !isBound(pod) && (minCount === undefined || (counts.get(key) ?? 0) < minCount)
  }
}

function named(objects: readonly { readonly metadata: { readonly name: string } }[]): string {
  return objects.map(({ metadata }) => metadata.name).join(', ')
}
