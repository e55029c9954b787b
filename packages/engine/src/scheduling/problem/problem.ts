/**
 * Reduces a scheduling input to what a decision can depend on: equal pods become one shape, and bound pods become counts.
 * The result is plain data, which can be sent to another thread. It is built in steps, so that the event loop is not
 * blocked.
 */
import {
  type LabelSelector,
  type Pod,
  type PodAffinityTerm,
  type PodSpec,
  type PodStatus,
  ownValue,
  setOwn,
} from '@tenon/api'
import { compareText } from '../../input/compare-text.ts'
import type { DevicesInput } from '../../input/devices.ts'
import { invalidFields, shapeProblemText } from '../../eligibility/input-shapes.ts'
import { countedDrivers } from '../pods/attachments.ts'
import { withoutPreferences } from '../pods/relaxation.ts'
import { finished } from '../../steps.ts'
import { type HostNames, hostNames, withHostNames } from './spec-reading.ts'
import { problemText } from '../../input/problem-text.ts'
import { knownSpecs, type SpecCache, type SpecReading, textOf } from './spec-reading.ts'
import type {
  AttachLimits,
  DaemonInput,
  NodeInput,
  PodGroupInput,
  PodOrigin,
  PodVolumes,
  PoolInput,
  QuotaInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyNode,
  VolumeUse,
} from '../../input/input.ts'

/** A pod as selectors see it, with only the labels that some selector names. */
export interface SelectablePod {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

/** Pods that are equal in everything that decides where they may go. */
export interface ShapeSource extends SelectablePod {
  readonly spec: PodSpec
  /** Only of pods whose containers were resized in place. */
  readonly status: PodStatus | undefined
  readonly origin: PodOrigin
  readonly volumeAlternatives: PodVolumes['alternatives']
  /** The number of volumes by CSI driver, for drivers with a known attach limit. */
  readonly attachments: Readonly<Record<string, number>>
  /** Set when a volume lookup failed, so that no existing node can be judged. */
  readonly hasUnknownVolumes: boolean
  /** ResourceClaims (`namespace/name`) of one of the pods; the other pods have equal claims. */
  readonly claims: readonly string[]
  /** Whether some of the claims are shared with other pods, or allocated: a node without their devices may get them later. */
  readonly sharesClaims: boolean
  /** Whether one of its claims was created for its extended resources. */
  readonly hasExtendedClaim: boolean
}

/** Bound pods that are equal for every topology rule. */
interface BoundShape extends SelectablePod {
  /** The spec, of pods with required anti-affinity only. */
  readonly spec: PodSpec | undefined
}

/** How many bound pods of one shape are on one node. */
export interface BoundCount {
  readonly shape: number
  readonly node: string
  /** Pods that spread constraints and affinity count: neither ended nor terminating. */
  counted: number
  /** Pods whose anti-affinity holds: those that have not ended. */
  present: number
}

/** A pod group, by indexes. */
export interface GroupSource extends Omit<PodGroupInput, 'members' | 'bound'> {
  /** Its index among the groups of the problem. */
  readonly index: number
  /** Indexes of its members, in the order in which kube-scheduler tries them. */
  readonly members: readonly number[]
  /** The number of members that must be placed together. */
  readonly need: number
  readonly bound: number
}

/** Everything a decision depends on, by index. */
export interface Problem {
  readonly shapes: readonly ShapeSource[]
  /** The shape of each pod; -1 for invalid pods. */
  readonly shapeOf: Int32Array
  readonly uids: readonly string[]
  readonly created: readonly string[]
  /** Volume claims that count towards attach limits, by pod. */
  readonly volumeClaims: ReadonlyMap<number, VolumeUse>
  /** ReadWriteOncePod claims, by pod. */
  readonly exclusiveClaims: ReadonlyMap<number, readonly string[]>
  /** ResourceClaims (`namespace/name`), by pod. */
  readonly deviceClaims: ReadonlyMap<number, readonly string[]>
  readonly devices: DevicesInput | undefined
  /** Index of the node that an earlier decision planned for the pod, by pod. */
  readonly planned: ReadonlyMap<number, number>
  /** What is wrong with invalid pods. */
  readonly malformed: ReadonlyMap<number, string>
  readonly nodes: readonly NodeInput[]
  readonly pools: readonly PoolInput[]
  readonly quotas: readonly QuotaInput[]
  readonly daemons: readonly DaemonInput[]
  readonly attachLimits: AttachLimits
  readonly policy: SchedulingPolicy
  readonly boundShapes: readonly BoundShape[]
  readonly boundCounts: readonly BoundCount[]
  readonly topologyNodes: ReadonlyMap<string, TopologyNode>
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>
  /** In order of their ids. */
  readonly podGroups: readonly GroupSource[]
}

const noAttachLimits: AttachLimits = { byType: {}, others: {} }

const noAttachments: ShapeSource['attachments'] = {}

/** Pods read between two yields of {@link problemInSteps}. */
const podsPerStep = 500

/**
 * Yields after a bounded amount of work, so that the event loop can run.
 * @param known cache of pods that have been read, kept from one problem to the next.
 */
export function* problemInSteps(
  input: SchedulingInput,
  known: SpecCache = knownSpecs(),
): Generator<undefined, Problem, undefined> {
  const reader = new PodReader(input, known)
  yield* eachOf(input.pods, podsPerStep, (pod, index) => reader.readSpec(index, pod))
  const batch = new Set(input.pods.map((pod) => pod.metadata?.uid ?? ''))
  const bound = new BoundReader(reader.selectorKeys)
  const others = input.topology.pods
  yield* eachOf(others, 4 * podsPerStep, (pod) => {
    if (isReadable(pod)) bound.readSelectors(pod)
  })
  const keys = [...reader.selectorKeys].toSorted()
  yield* eachOf(others, podsPerStep, (pod) => {
    if (isReadable(pod) && !batch.has(pod.metadata.uid ?? '')) bound.read(pod, keys)
  })
  yield* eachOf(input.pods, podsPerStep, (pod, index) => reader.readShape(index, pod, keys))
  return {
    ...reader.result(),
    ...bound.result(),
    planned: plannedNodes(input),
    nodes: input.nodes,
    pools: input.pools,
    quotas: input.quotas ?? [],
    daemons: input.daemons,
    attachLimits: input.attachLimits ?? noAttachLimits,
    policy: input.policy,
    devices: input.devices,
    topologyNodes: input.topology.nodes,
    namespaces: input.topology.namespaces,
    podGroups: groupSources(input),
  }
}

/** Yields after every `perStep` items. */
function* eachOf<T>(
  items: readonly T[],
  perStep: number,
  visit: (item: T, index: number) => void,
): Generator<undefined, void, undefined> {
  for (let start = 0; start < items.length; start += perStep) {
    if (start > 0) yield
    const end = Math.min(items.length, start + perStep)
    for (let index = start; index < end; index++) visit(items[index] as T, index)
  }
}

function plannedNodes({ pods, nodes, planned }: SchedulingInput): ReadonlyMap<number, number> {
  const byPod = new Map<number, number>()
  if (planned === undefined || planned.size === 0) return byPod
  const byName = new Map(nodes.map(({ name }, index) => [name, index]))
  for (const [index, pod] of pods.entries()) {
    const name = planned.get(pod.metadata?.uid ?? '')
    const node = name === undefined ? undefined : byName.get(name)
    if (node !== undefined) byPod.set(index, node)
  }
  return byPod
}

function groupSources({ pods, podGroups = [] }: SchedulingInput): readonly GroupSource[] {
  if (podGroups.length === 0) return []
  const byUid = new Map(pods.map((pod, index) => [pod.metadata?.uid ?? '', index]))
  const age = (index: number) => pods[index]?.metadata?.creationTimestamp ?? ''
  return podGroups
    .map(({ members, ...group }) => ({
      ...group,
      need: Math.max(0, group.minCount - group.bound),
      members: members
        .toSorted()
        .flatMap((uid) => byUid.get(uid) ?? [])
        .toSorted((a, b) => compareText(age(a), age(b))),
    }))
    .toSorted((a, b) => compareText(a.id, b.id))
    .map((group, index) => ({ ...group, index }))
}

/** {@link problemInSteps} without a pause. */
export function problemOf(input: SchedulingInput, known?: SpecCache): Problem {
  return finished(problemInSteps(input, known))
}

/** A bound pod without the fields every pod has cannot be counted. */
function isReadable({ metadata, spec }: Pod): boolean {
  return typeof metadata === 'object' && typeof spec === 'object' && Array.isArray(spec.containers)
}

/** What distinguishes shapes besides the fields of the pod. */
interface ShapeReading {
  readonly specId: number
  readonly keys: readonly string[]
  readonly status: PodStatus | undefined
}

class PodReader {
  /** Label keys that some selector of a pending pod names. */
  readonly selectorKeys = new Set<string>()
  readonly #input: SchedulingInput
  readonly #countedDrivers: ReadonlySet<string>
  readonly #hostOf: HostNames
  readonly #specs = new Map<string, number>()
  readonly #reduced: PodSpec[] = []
  readonly #specOf: Int32Array
  readonly #shapes: ShapeSource[] = []
  readonly #byKey = new Map<string, number>()
  readonly #shapeOf: Int32Array
  readonly #uids: string[] = []
  readonly #created: string[] = []
  readonly #claims = new Map<number, VolumeUse>()
  readonly #exclusive = new Map<number, readonly string[]>()
  readonly #malformed = new Map<number, string>()
  readonly #deviceClaims = new Map<number, readonly string[]>()
  readonly #claimKeys: ClaimKeys | undefined
  readonly #read: (pod: Pod) => SpecReading
  readonly #statuses: SpecReading['status'][] = []
  /** Shapes of pods of which nothing counts but these three: most of them. */
  readonly #plain = new Map<string, Map<PodOrigin, (number | undefined)[]>>()

  constructor(input: SchedulingInput, known: SpecCache) {
    this.#input = input
    this.#countedDrivers = countedDrivers(input.attachLimits, input.pools)
    this.#hostOf = hostNames(input.nodes, input.topology.nodes)
    this.#read = known.reading()
    this.#claimKeys = input.devices && new ClaimKeys(input.devices)
    this.#specOf = new Int32Array(input.pods.length).fill(-1)
    this.#shapeOf = new Int32Array(input.pods.length).fill(-1)
  }

  readSpec(index: number, pod: Pod): void {
    const { key, status } = this.#read(pod)
    this.#statuses.push(status)
    if (typeof key === 'object') {
      this.#malformed.set(index, key.problem)
      return
    }
    try {
      const { spec } = pod
      let id = this.#specs.get(key)
      if (id === undefined) {
        const problems = invalidFields(pod)
        if (problems.length > 0) throw new TypeError(shapeProblemText(problems))
        id = this.#reduced.length
        this.#specs.set(key, id)
        const { preferences } = this.#input.policy
        this.#reduced.push(
          withHostNames(preferences === 'Ignore' ? withoutPreferences(spec) : spec, this.#hostOf),
        )
        collectSelectorKeys(spec, this.selectorKeys)
      }
      this.#specOf[index] = id
    } catch (error) {
      this.#malformed.set(index, problemText(error))
    }
  }

  readShape(index: number, pod: Pod, keys: readonly string[]): void {
    const { uid = '', creationTimestamp = '' } = pod.metadata ?? {}
    this.#uids.push(uid)
    this.#created.push(creationTimestamp)
    const specId = this.#specOf[index] as number
    if (specId < 0) return
    const volumes = this.#input.volumes?.get(uid)
    try {
      this.#shapeOf[index] = this.#shapeFor(pod, { specId, keys, status: this.#statusOf(index) })
    } catch (error) {
      this.#malformed.set(index, problemText(error))
      return
    }
    if (volumes !== undefined && Object.keys(volumes.claims).length > 0)
      this.#claims.set(index, volumes.claims)
    if (volumes?.exclusive !== undefined) this.#exclusive.set(index, volumes.exclusive)
    const claims = this.#input.devices?.claimsOf.get(uid)
    if (claims !== undefined && claims.length > 0) this.#deviceClaims.set(index, claims)
  }

  #statusOf(index: number): PodStatus | undefined {
    const status = this.#statuses[index]
    if (status !== undefined && 'problem' in status) throw new TypeError(status.problem)
    return status
  }

  #shapeFor(pod: Pod, read: ShapeReading): number {
    const { specId, keys, status } = read
    const { uid = '', namespace = '' } = pod.metadata
    const origin = this.#input.origins?.get(uid) ?? 'pending'
    const isPlain =
      keys.length === 0 &&
      status === undefined &&
      this.#claimKeys === undefined &&
      this.#input.volumes?.has(uid) !== true
    if (!isPlain) return this.#anyShapeFor(pod, origin, read)
    const byOrigin = this.#plain.get(namespace) ?? new Map<PodOrigin, (number | undefined)[]>()
    this.#plain.set(namespace, byOrigin)
    const bySpec = byOrigin.get(origin) ?? []
    byOrigin.set(origin, bySpec)
    return (bySpec[specId] ??= this.#anyShapeFor(pod, origin, read))
  }

  #anyShapeFor(pod: Pod, origin: PodOrigin, { specId, keys, status }: ShapeReading): number {
    const { uid = '', namespace = '', labels = {} } = pod.metadata
    const volumes = this.#input.volumes?.get(uid)
    let key = `${specId}\n${namespace}\n${origin}`
    for (const name of keys)
      if (ownValue(labels, name) !== undefined) key += `\n${name}=${ownValue(labels, name)}`
    const attachments = this.#attachmentsOf(volumes)
    key += volumesKey(volumes)
    for (const driver in attachments) key += `\n${driver}:${ownValue(attachments, driver)}`
    if (status !== undefined) key += `\n${JSON.stringify(status)}`
    const claims = this.#claimKeys?.of(uid, origin) ?? noClaims
    key += claims.key
    const hasExtendedClaim = this.#input.devices?.withExtendedClaim?.has(uid) === true
    if (hasExtendedClaim) key += '\nextended'
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    this.#byKey.set(key, this.#shapes.length)
    return (
      this.#shapes.push({
        spec: this.#reduced[specId] as PodSpec,
        status,
        namespace,
        labels: only(labels, keys),
        origin,
        volumeAlternatives: volumes?.alternatives ?? [],
        attachments,
        hasUnknownVolumes: volumes?.unknownClaims ?? false,
        claims: claims.names,
        sharesClaims: claims.areShared,
        hasExtendedClaim,
      }) - 1
    )
  }

  #attachmentsOf(volumes: PodVolumes | undefined): ShapeSource['attachments'] {
    const counts = Object.entries(volumes?.claims ?? {}).flatMap(([driver, claims]) =>
      this.#countedDrivers.has(driver) ? [[driver, new Set(claims).size] as const] : [],
    )
    return counts.length === 0 ? noAttachments : Object.fromEntries(counts)
  }

  result(): Pick<
    Problem,
    | 'shapes'
    | 'shapeOf'
    | 'uids'
    | 'created'
    | 'volumeClaims'
    | 'exclusiveClaims'
    | 'deviceClaims'
    | 'malformed'
  > {
    return {
      shapes: this.#shapes,
      shapeOf: this.#shapeOf,
      uids: this.#uids,
      created: this.#created,
      volumeClaims: this.#claims,
      exclusiveClaims: this.#exclusive,
      deviceClaims: this.#deviceClaims,
      malformed: this.#malformed,
    }
  }
}

function volumesKey(volumes: PodVolumes | undefined): string {
  if (volumes === undefined) return ''
  return `\n${JSON.stringify(volumes.alternatives)}${volumes.unknownClaims === true ? '?' : ''}`
}

interface ClaimKey {
  readonly key: string
  readonly names: readonly string[]
  readonly areShared: boolean
}

const noClaims: ClaimKey = { key: '', names: [], areShared: false }

/** What distinguishes the ResourceClaims of pods. */
class ClaimKeys {
  readonly #input: DevicesInput
  readonly #users = new Map<string, number>()
  readonly #allocated: ReadonlyMap<string, DevicesInput['allocations'][number]>

  constructor(input: DevicesInput) {
    this.#input = input
    this.#allocated = new Map(input.allocations.map((each) => [each.claim, each]))
    for (const names of input.claimsOf.values())
      for (const name of new Set(names)) this.#users.set(name, (this.#users.get(name) ?? 0) + 1)
  }

  of(uid: string, origin: PodOrigin): ClaimKey {
    const names = this.#input.claimsOf.get(uid) ?? []
    if (names.length === 0) return noClaims
    let areShared = false
    const keys = names.map((name) => {
      const allocation = this.#allocated.get(name)
      const isOwn = this.#users.get(name) === 1 && new Set(names).size === names.length
      // Devices that only this pod holds become free when it moves, so only the requests of the claim count.
      const isFreed = origin !== 'pending' && allocation?.pods?.every((pod) => pod === uid) === true
      if (isOwn && (allocation === undefined || isFreed)) return textOf(this.#input.claims.get(name)?.spec)
      areShared = true
      return `claim ${name}`
    })
    return { key: `\n${keys.join('\n')}`, names, areShared }
  }
}

class BoundReader {
  readonly #selectorKeys: Set<string>
  readonly #shapes: BoundShape[] = []
  readonly #byKey = new Map<string, number>()
  readonly #counts: BoundCount[] = []
  /** By shape, then by node. */
  readonly #countOf: Map<string, BoundCount>[] = []

  constructor(selectorKeys: Set<string>) {
    this.#selectorKeys = selectorKeys
  }

  readSelectors(pod: Pod): void {
    if (requiredAntiAffinity(pod.spec).length > 0) collectSelectorKeys(pod.spec, this.#selectorKeys)
  }

  read(pod: Pod, keys: readonly string[]): void {
    const node = pod.spec.nodeName ?? ''
    const phase = pod.status?.phase
    if (node === '' || phase === 'Succeeded' || phase === 'Failed') return
    const anti = requiredAntiAffinity(pod.spec)
    const { namespace = '', labels = {}, deletionTimestamp } = pod.metadata
    let key = namespace
    for (const name of keys)
      if (ownValue(labels, name) !== undefined) key += `\n${name}=${ownValue(labels, name)}`
    if (anti.length > 0) key += `\n${textOf(anti)}${textOf(pod.spec.tolerations)}`
    let shape = this.#byKey.get(key)
    if (shape === undefined) {
      shape = this.#shapes.length
      this.#byKey.set(key, shape)
      this.#shapes.push({
        namespace,
        labels: only(labels, keys),
        spec: anti.length > 0 ? pod.spec : undefined,
      })
      this.#countOf.push(new Map())
    }
    const count = this.#countFor(shape, node)
    count.present++
    if (deletionTimestamp === undefined) count.counted++
  }

  #countFor(shape: number, node: string): BoundCount {
    const counts = this.#countOf[shape] as Map<string, BoundCount>
    let count = counts.get(node)
    if (count === undefined) {
      count = { shape, node, counted: 0, present: 0 }
      counts.set(node, count)
      this.#counts.push(count)
    }
    return count
  }

  result(): Pick<Problem, 'boundShapes' | 'boundCounts'> {
    return { boundShapes: this.#shapes, boundCounts: this.#counts }
  }
}

function requiredAntiAffinity(spec: PodSpec): readonly PodAffinityTerm[] {
  return spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
}

function only(
  labels: Readonly<Record<string, string>>,
  keys: readonly string[],
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {}
  for (const key of keys) {
    const value = ownValue(labels, key)
    if (value !== undefined) setOwn(kept, key, value)
  }
  return kept
}

function collectSelectorKeys(spec: PodSpec, into: Set<string>): void {
  const collect = (selector: LabelSelector | undefined, more: readonly string[] | undefined) => {
    for (const key in selector?.matchLabels) into.add(key)
    for (const { key } of selector?.matchExpressions ?? []) into.add(key)
    for (const key of more ?? []) into.add(key)
  }
  for (const constraint of spec.topologySpreadConstraints ?? [])
    collect(constraint.labelSelector, constraint.matchLabelKeys)
  for (const kind of [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity]) {
    for (const term of kind?.requiredDuringSchedulingIgnoredDuringExecution ?? [])
      collect(term.labelSelector, term.matchLabelKeys)
    for (const { podAffinityTerm } of kind?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      collect(podAffinityTerm.labelSelector, podAffinityTerm.matchLabelKeys)
  }
}
