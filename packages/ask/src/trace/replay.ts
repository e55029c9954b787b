/** Plays a recording with other settings (ask.md 6). */
import {
  capacityTypes,
  type InstanceType,
  karpenterKinds,
  type KubeObject,
  labels,
  type NodePool,
  ownValue,
  parseResources,
  type Requirement,
} from '@tenon/api'
import type { Settings } from '@tenon/operator'
import type { Catalogue } from '../play/catalogue.ts'
import { Play, type PlayTimes, type TimedChange } from '../play/play.ts'
import type { PlayReport } from '../play/report.ts'
import type { NodeCameRecord } from './records.ts'
import type { Recording } from './recording.ts'
import { standingFleet } from './standing-fleet.ts'

/** Settings of a replay. */
export interface ReplayVariant {
  readonly name: string
  readonly settings: Settings
  /** Replace the recorded objects of the same name, such as NodePools. */
  readonly objects?: readonly KubeObject[]
  /** Prices per hour by instance type; replace the recorded ones. */
  readonly prices?: ReadonlyMap<string, number>
  readonly times?: Partial<PlayTimes>
  readonly seed?: number
}

/** What a replay has to assume. */
export type ReplayAssumption =
  /** Offerings are those at the start of the recording, or those seen on nodes. */
  | { readonly kind: 'catalogue'; readonly from: 'recorded' | 'nodes' }
  /** Boot and start times are the same for all nodes and pods. */
  | { readonly kind: 'times'; readonly times: PlayTimes }
  /** Nodes without a NodePool are left out; their pods start without a node. */
  | { readonly kind: 'foreignNodes'; readonly count: number }

export interface ReplayReport {
  readonly report: PlayReport
  readonly assumptions: readonly ReplayAssumption[]
}

/**
 * Plays the whole recording.
 * @param progress called at each full hour of it.
 */
export async function replay(
  recording: Recording,
  variant: ReplayVariant,
  progress?: (atMs: number) => void,
): Promise<ReplayReport> {
  const { startMs, endMs } = recording
  const objects = withOverrides(recording.objects, variant.objects ?? [])
  const pools = objects.filter((object): object is NodePool => object.kind === karpenterKinds.nodePool.kind)
  const fleet = standingFleet(recording, pools)
  const play = await Play.start({
    objects: [...objects, ...fleet],
    catalogue: repriced(catalogueOf(recording), variant.prices),
    settings: variant.settings,
    seed: variant.seed ?? 1,
    startMs,
    ...(variant.times && { times: variant.times }),
  })
  const changes = withoutOverridden(recording.changes, variant.objects ?? [])
  let next = 0
  for (let atMs = startMs; atMs < endMs; ) {
    const untilMs = Math.min(atMs + hourMs, endMs)
    const from = next
    while (next < changes.length && (changes[next]?.atMs ?? 0) <= untilMs) next++
    await play.run(changes.slice(from, next), untilMs)
    atMs = untilMs
    progress?.(atMs)
  }
  const report = await play.report()
  const times = play.times
  await play.stop()
  const foreign = recording.nodes.length - fleet.filter(({ kind }) => kind === 'Node').length
  return {
    report,
    assumptions: [
      { kind: 'catalogue', from: recording.catalogues === undefined ? 'nodes' : 'recorded' },
      { kind: 'times', times },
      ...(foreign > 0 ? [{ kind: 'foreignNodes', count: foreign } as const] : []),
    ],
  }
}

const hourMs = 3_600_000

const keyOf = ({ apiVersion, kind, metadata }: KubeObject): string =>
  `${apiVersion}/${kind}/${metadata.namespace ?? ''}/${metadata.name}`

function withOverrides(
  recorded: readonly KubeObject[],
  overrides: readonly KubeObject[],
): readonly KubeObject[] {
  const byKey = new Map(recorded.map((object) => [keyOf(object), object]))
  for (const object of overrides) {
    const before = byKey.get(keyOf(object))
    const metadata = {
      uid: `given-${object.metadata.name}`,
      generation: 1,
      ...before?.metadata,
      ...object.metadata,
    }
    byKey.set(keyOf(object), { ...object, metadata })
  }
  return [...byKey.values()]
}

/** Given objects are fixed for the whole replay: recorded changes of them are dropped. */
function withoutOverridden(
  changes: readonly TimedChange[],
  overrides: readonly KubeObject[],
): readonly TimedChange[] {
  const given = new Set(overrides.map(keyOf))
  return changes.filter(({ change }) => change.kind !== 'put' || !given.has(keyOf(change.object)))
}

function catalogueOf(recording: Recording): Catalogue {
  const { catalogues } = recording
  if (catalogues === undefined) return { byNodePool: new Map(), others: seenTypes(recording.allNodes) }
  const byNodePool = new Map(
    catalogues.flatMap(({ nodePools, instanceTypes }) =>
      nodePools.flatMap((name) => (instanceTypes === undefined ? [] : [[name, instanceTypes] as const])),
    ),
  )
  const [others] = byNodePool.values()
  return { byNodePool, ...(others && { others }) }
}

/** Types as seen on nodes, with the zones in which they were seen. */
function seenTypes(nodes: readonly NodeCameRecord[]): readonly InstanceType[] {
  const byName = new Map<string, NodeCameRecord[]>()
  for (const node of nodes) {
    const name = ownValue(node.labels, labels.instanceType)
    if (name !== undefined) byName.set(name, [...(byName.get(name) ?? []), node])
  }
  return Array.from(byName, ([name, seen]) => typeOf(name, seen))
}

function typeOf(name: string, seen: readonly NodeCameRecord[]): InstanceType {
  const [first] = seen
  const capacity = parseResources(first?.allocatable)
  const is = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })
  const valuesOf = (key: string, otherwise: string): readonly string[] => [
    ...new Set(seen.map((node) => ownValue(node.labels, key) ?? otherwise)),
  ]
  const places = new Map(
    seen.map((node) => {
      const zone = ownValue(node.labels, labels.zone) ?? ''
      const capacityType = ownValue(node.labels, labels.capacityType) ?? capacityTypes.onDemand
      return [`${zone}/${capacityType}`, { zone, capacityType, pricePerHour: node.pricePerHour }]
    }),
  )
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, ...valuesOf(labels.arch, 'amd64')),
      is(labels.os, ...valuesOf(labels.os, 'linux')),
      is(labels.zone, ...valuesOf(labels.zone, '')),
      is(labels.capacityType, ...valuesOf(labels.capacityType, capacityTypes.onDemand)),
    ],
    offerings: [...places.values()].map(({ zone, capacityType, pricePerHour }) => ({
      requirements: [is(labels.zone, zone), is(labels.capacityType, capacityType)],
      pricePerHour,
      available: true,
    })),
    capacity,
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

function repriced(catalogue: Catalogue, prices: ReadonlyMap<string, number> | undefined): Catalogue {
  if (prices === undefined) return catalogue
  const priced = (types: readonly InstanceType[]): readonly InstanceType[] =>
    types.map((type) => {
      const price = prices.get(type.name)
      if (price === undefined) return type
      return { ...type, offerings: type.offerings.map((offering) => ({ ...offering, pricePerHour: price })) }
    })
  const { byNodePool, others, ...rest } = catalogue
  return {
    ...rest,
    byNodePool: new Map(Array.from(byNodePool, ([name, types]) => [name, priced(types)])),
    ...(others && { others: priced(others) }),
  }
}
