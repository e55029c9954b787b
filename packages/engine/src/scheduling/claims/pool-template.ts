/** A NodePool as a template for new claims (scheduling.md 5, 7.2, 10). */
import {
  type InstanceType,
  labels,
  nodeClassLabel,
  type NodePool,
  ownValue,
  podRequests,
  requiredFeatures,
  undeclaredFeatures,
  type Resources,
  type Taint,
} from '@tenon/api'
import { requireReadablePool, requireReadableSpec } from '../../eligibility/input-shapes.ts'
import { type NodeSelection, opposite, type Selects, selects } from '../../requirements/node-selection.ts'
import { allowsAbsence, oneOf, type ValueSet } from '../../requirements/requirement.ts'
import {
  compatible,
  merged,
  overlaps,
  parseRequirements,
  requiredAlternatives,
  type Requirements,
  requirementsOf,
} from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import type { DaemonInput, PoolInput, SchedulingPolicy } from '../../input/input.ts'
import { type HostNames, withHostNames } from '../problem/spec-reading.ts'
import { knownOr } from '../memoized.ts'
import { allocatableGroups } from '../types/allocatable.ts'
import type { ServedResources } from '../devices/served-resources.ts'
import type { Attachments } from '../pods/attachments.ts'
import { type HostPort, hostPortsOf, portsClash } from '../../input/host-ports.ts'
import {
  type CompiledType,
  meets,
  type OfferingGroup,
  type TypeReader,
  offeringsWithin,
  unmetMinValues,
} from '../types/instance-rows.ts'
import { type Amounts, type ResourceSpace, type Room, takeFrom } from '../pods/resource-space.ts'
import type { SelectablePod } from '../problem/problem.ts'
import { hardTaints, untolerated } from '../pods/taints.ts'

/**
 * Labels that every node gets in the end, so that daemon pods may select on them. They are not part of
 * NodeClaims.
 */
export const simulationOnlyLabels: readonly string[] = [labels.registered, labels.initialized]

/** A DaemonSet's pod template, compiled. */
export interface CompiledDaemon {
  readonly name: string
  /** The labels that selectors of other pods match. */
  readonly selectable: SelectablePod
  readonly tolerations: NonNullable<DaemonInput['spec']['tolerations']>
  readonly alternatives: readonly Requirements[]
  readonly requests: Resources
  readonly hostPorts: readonly HostPort[]
  /** Features that the node must declare. */
  readonly features: readonly string[]
}

/** @throws RangeError or TypeError when the daemon's pod is malformed. */
export function compileDaemon(daemon: DaemonInput, hostOf: HostNames): CompiledDaemon {
  const { name, namespace, labels: podLabels } = daemon
  requireReadableSpec(daemon.spec)
  const spec = withHostNames(daemon.spec, hostOf)
  return {
    name,
    selectable: { namespace, labels: podLabels },
    tolerations: spec.tolerations ?? [],
    alternatives: requiredAlternatives(spec),
    requests: podRequests(spec),
    hostPorts: hostPortsOf(spec),
    features: requiredFeatures(spec),
  }
}

/** Offerings of a type with equal room, minus daemon pods. */
export interface TypeRow extends Room {
  readonly index: number
  readonly type: CompiledType
  readonly group: OfferingGroup
  readonly capacity: Amounts
  readonly daemons: DaemonLoad
}

/** The daemon pods that run on each node of a type. */
export interface DaemonLoad {
  readonly amounts: Amounts
  readonly isEmpty: boolean
  readonly ports: readonly DaemonPort[]
  readonly running: readonly CompiledDaemon[]
}

/** A host port of a daemon pod. */
interface DaemonPort extends HostPort {
  /** Name of the DaemonSet. */
  readonly daemon: string
}

/** A pool with its requirements, even if it cannot launch anything. */
export interface CompiledPool {
  readonly input: PoolInput
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: Requirements
  readonly types: readonly CompiledType[]
}

/**
 * @param report is called for each invalid instance type; the others are used.
 * @throws RangeError or TypeError when the NodePool is malformed.
 */
export function compilePool(
  input: PoolInput,
  reader: TypeReader,
  report: (type: InstanceType, problem: unknown) => void,
): CompiledPool {
  requireReadablePool(input.nodePool)
  const { metadata, spec } = input.nodePool.spec.template
  const ref = spec.nodeClassRef
  const templateLabels = {
    ...input.defaults?.labels,
    ...metadata?.labels,
    [labels.nodePool]: input.nodePool.metadata.name,
    [nodeClassLabel(ref)]: ref.name,
  }
  return {
    input,
    labels: templateLabels,
    taints: taintsOf(input),
    requirements: merged(
      parseRequirements(spec.requirements ?? []),
      requirementsOf([
        ...Object.entries(templateLabels).map(([key, value]) => oneOf(key, value)),
        ...simulationOnlyLabels.map((key) => oneOf(key, 'true')),
      ]),
    ),
    types: input.instanceTypes.flatMap((type) => {
      const read = reader.read(type)
      if (!('problem' in read)) return read
      report(type, read.problem)
      return []
    }),
  }
}

/** Taints of every node of the pool, startup taints omitted. */
export function taintsOf({ nodePool, defaults }: Pick<PoolInput, 'nodePool' | 'defaults'>): readonly Taint[] {
  const own = nodePool.spec.template.spec.taints ?? []
  return defaults === undefined ? own : [...own, ...defaults.taints]
}

/** Whether some label must exist but has no allowed value. */
function isContradictory(requirements: Requirements): boolean {
  return [...requirements.values()].some(
    (set) => !set.complement && set.values.size === 0 && !allowsAbsence(set),
  )
}

/** Pools in the order in which they are tried: highest weight first, then names in descending order. */
export function poolOrder(a: NodePool, b: NodePool): number {
  const byWeight = (b.spec.weight ?? 0) - (a.spec.weight ?? 0)
  return byWeight !== 0 ? byWeight : a.metadata.name < b.metadata.name ? 1 : -1
}

export interface Template {
  readonly index: number
  readonly nodePool: NodePool
  readonly name: string
  /** Labels of every claim of the pool. */
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly declaredFeatures: readonly string[] | undefined
  readonly state: StateId
  /** The quotas that may count its nodes. */
  readonly quotas: readonly TemplateQuota[]
  /** Whether it is a NodePool's template confined to nodes that some quota does not count. */
  readonly isConfined: boolean
  /** The types that meet the pool's requirements and are available. */
  readonly rows: readonly TypeRow[]
}

/** A quota, and which nodes of a template it counts. */
export interface TemplateQuota {
  /** Index of the quota in the problem. */
  readonly quota: number
  readonly selection: NodeSelection
  /** By index of the row; a node counts if it may match. */
  readonly counts: readonly boolean[]
  /** Requirements of which each keeps the template's nodes out of the quota; empty if that is of no use. */
  readonly waysOut: readonly ValueSet[]
}

/** Why a pool has no template. */
export interface NoTemplate {
  readonly kind: 'noTypes'
  readonly becauseOfMinValues: boolean
}

/** What templates are made with. */
export interface TemplateContext {
  readonly states: RequirementStates
  readonly rows: SharedRows
  readonly space: ResourceSpace
  readonly daemons: readonly CompiledDaemon[]
  readonly attachments: Attachments
  readonly servedResources: ServedResources
  readonly policy: SchedulingPolicy
  readonly quotas: readonly CompiledQuota[]
}

/** A quota that may count new nodes. */
interface CompiledQuota {
  /** Index in the problem. */
  readonly quota: number
  readonly selection: NodeSelection
  /** What is left of each resource that it limits. */
  readonly left: Resources
  /** The most nodes that the decision can launch. */
  readonly nodes: number
}

/** A type with one of its groups that a pool may launch. */
type Usable = Pick<TypeRow, 'type' | 'group'>

/**
 * The rows of one problem's templates. Pools with the same types, demands on them and daemon pods share a list: with one
 * for each pool, 200 pools of 600 types take 300 MiB and a second (scale.md 2).
 */
export class SharedRows {
  /** By the pool's list of types, then by its requirements on their labels. */
  readonly #usable = new Map<readonly CompiledType[], Map<StateId, readonly Usable[]>>()
  /** By what is usable, then by what takes room of it. */
  readonly #rows = new Map<readonly Usable[], Map<string, readonly TypeRow[]>>()
  readonly #typeLabels = new Map<readonly CompiledType[], ReadonlySet<string>>()

  /** The types that the pool can launch now; the list must not be changed. */
  of(pool: CompiledPool, context: TemplateContext): readonly TypeRow[] {
    const usable = this.#usableOf(pool, context)
    const running = daemonsOf(pool, context)
    const taken = JSON.stringify([
      running.map(({ daemon, alternatives }) => [
        context.daemons.indexOf(daemon),
        ...alternatives.map((each) => daemon.alternatives.indexOf(each)),
      ]),
      pool.input.missingDrivers,
    ])
    const byTaken = knownOr(this.#rows, usable, () => new Map<string, readonly TypeRow[]>())
    return knownOr(byTaken, taken, () =>
      usable.map(({ type, group }, index) => {
        const daemons = loadOn(type, running, context.space)
        const room = roomOn({ type, allocatable: group.allocatable, daemons }, pool, context)
        return { index, type, group, room, capacity: context.space.vector(type.type.capacity), daemons }
      }),
    )
  }

  #usableOf({ types, requirements }: CompiledPool, { states, policy }: TemplateContext): readonly Usable[] {
    const typeLabels = knownOr(this.#typeLabels, types, () => labelsOf(types))
    const wanted = new Map([...requirements].filter(([key]) => typeLabels.has(key)))
    const byWanted = knownOr(this.#usable, types, () => new Map<StateId, readonly Usable[]>())
    return knownOr(byWanted, states.idOf(wanted), () =>
      types.flatMap((type) => {
        if (!meets(type, wanted)) return []
        const groups = type.groups.filter(
          (group) =>
            offeringsWithin(group, wanted, policy.wellKnownLabels).length > 0 &&
            Object.values(group.allocatable).every((amount) => amount >= 0),
        )
        return groups.map((group) => ({ type, group }))
      }),
    )
  }
}

/** The labels on which a type or an offering has a requirement. */
function labelsOf(types: readonly CompiledType[]): ReadonlySet<string> {
  return new Set(
    types.flatMap(({ requirements, sold }) => [requirements, ...sold].flatMap((each) => [...each.keys()])),
  )
}

export function compileTemplate(
  pool: CompiledPool,
  index: number,
  context: TemplateContext,
): Template | NoTemplate {
  const { states, policy } = context
  if (isContradictory(pool.requirements)) return { kind: 'noTypes', becauseOfMinValues: false }
  const rows = context.rows.of(pool, context)
  if (rows.length === 0) return { kind: 'noTypes', becauseOfMinValues: false }
  const types = rows.map(({ type }) => type)
  if (policy.minValues === 'Strict' && unmetMinValues(types, pool.requirements).size > 0)
    return { kind: 'noTypes', becauseOfMinValues: true }
  return {
    index,
    nodePool: pool.input.nodePool,
    name: pool.input.nodePool.metadata.name,
    labels: pool.labels,
    taints: pool.taints,
    declaredFeatures: pool.input.declaredFeatures,
    state: states.idOf(pool.requirements),
    quotas: context.quotas.flatMap((quota) => templateQuota(quota, pool, rows, policy) ?? []),
    isConfined: false,
    rows,
  }
}

/** Undefined if the quota counts no node of the pool. */
function templateQuota(
  { quota, selection, left, nodes }: CompiledQuota,
  pool: CompiledPool,
  rows: readonly TypeRow[],
  { wellKnownLabels }: SchedulingPolicy,
): TemplateQuota | undefined {
  const selected = rows.map(({ type, group }): Selects => {
    const have = merged(pool.requirements, type.requirements)
    const ofAll = selects(selection, have, wellKnownLabels)
    if (ofAll !== 'maybe') return ofAll
    const ofEach = new Set(
      offeringsWithin(group, pool.requirements, wellKnownLabels).map((offering) =>
        selects(selection, merged(have, offering.requirements), wellKnownLabels),
      ),
    )
    const [only = 'maybe'] = ofEach
    return ofEach.size === 1 ? only : 'maybe'
  })
  if (selected.every((each) => each === 'never')) return undefined
  const isOpen = selected.includes('maybe')
  const most = (name: string) =>
    name === 'nodes' ? 1 : Math.max(...rows.map(({ type }) => ownValue(type.type.capacity, name) ?? 0))
  const mayBeUsedUp = Object.entries(left).some(([name, amount]) => amount < nodes * most(name))
  return {
    quota,
    selection,
    counts: selected.map((each) => each !== 'never'),
    waysOut: isOpen && mayBeUsedUp ? selection.terms.map(opposite) : [],
  }
}

/**
 * The requirements of nodes that are out of some of the quotas that may count nodes of the template, those out of the
 * fewest first: pods get such nodes when a quota is used up (quotas.md 1).
 */
export function confinements({ requirements }: CompiledPool, { quotas }: Template): readonly Requirements[] {
  const out = (each: Requirements, { waysOut }: TemplateQuota) =>
    waysOut.map((way) => merged(each, requirementsOf([way])))
  const found = quotas.flatMap((quota) => out(requirements, quota))
  // Out of one quota suffices most of the time, so each has its turn before several are left at once.
  let several = quotas.flatMap((quota, index) =>
    out(requirements, quota).map((each) => ({ requirements: each, next: index + 1 })),
  )
  while (several.length > 0 && found.length < mostConfinements) {
    several = several.flatMap(({ requirements: each, next }) =>
      quotas
        .slice(next)
        .flatMap((quota, at) =>
          out(each, quota).map((more) => ({ requirements: more, next: next + at + 1 })),
        ),
    )
    found.push(...several.slice(0, mostConfinements - found.length).map((each) => each.requirements))
    several = several.slice(0, mostConfinements)
  }
  return found
}

/** With fewer, quotas count nodes that they need not count. */
const mostConfinements = 16

/** What pods may take of a new node, apart from its daemon pods. */
export function roomOn(
  {
    type,
    allocatable,
    daemons,
  }: { readonly type: CompiledType; readonly allocatable: Resources; readonly daemons: DaemonLoad },
  pool: CompiledPool,
  { attachments, servedResources, space }: TemplateContext,
): Amounts {
  const room = space.vector(allocatable)
  takeFrom(room, daemons.amounts)
  attachments.limit(room, pool.input, type.type.name)
  servedResources.unlimit(room, servedResources.countedIn(allocatable))
  return room
}

/** The daemon pods of the pool's nodes, by type. */
export function daemonLoads(
  pool: CompiledPool,
  context: TemplateContext,
): (type: CompiledType) => DaemonLoad {
  const running = daemonsOf(pool, context)
  return (type) => loadOn(type, running, context.space)
}

/** The room of a pool's nodes, by type: one entry per way in which it is offered, available or not. */
export function roomsOf(
  pool: CompiledPool,
  context: TemplateContext,
): (type: CompiledType) => readonly Room[] {
  const loadOf = daemonLoads(pool, context)
  return (compiled) => {
    const { type } = compiled
    const daemons = loadOf(compiled)
    const offerings = type.offerings.map((offering) => ({ ...offering, available: true }))
    return allocatableGroups({ ...type, offerings }).map(({ allocatable }) => ({
      room: roomOn({ type: compiled, allocatable, daemons }, pool, context),
    }))
  }
}

/** A daemon that runs in a pool, with those of its affinity terms that the pool allows. */
interface PoolDaemon {
  readonly daemon: CompiledDaemon
  readonly alternatives: readonly Requirements[]
}

function daemonsOf(pool: CompiledPool, { daemons, policy }: TemplateContext): readonly PoolDaemon[] {
  const taints = hardTaints(pool.taints)
  return daemons.flatMap((daemon) => {
    if (untolerated(taints, daemon.tolerations).length > 0) return []
    if (undeclaredFeatures(daemon.features, pool.input.declaredFeatures).length > 0) return []
    const alternatives = daemon.alternatives.filter((wanted) =>
      compatible(pool.requirements, wanted, policy.wellKnownLabels),
    )
    return alternatives.length === 0 ? [] : [{ daemon, alternatives }]
  })
}

function loadOn(type: CompiledType, candidates: readonly PoolDaemon[], space: ResourceSpace): DaemonLoad {
  const amounts = new Float64Array(space.size)
  const ports: DaemonPort[] = []
  const running: CompiledDaemon[] = []
  for (const { daemon, alternatives } of candidates) {
    if (!alternatives.some((wanted) => wanted.size === 0 || overlaps(type.requirements, wanted))) continue
    const requests = space.vector(daemon.requests)
    for (let i = 0; i < amounts.length; i++) amounts[i] = (amounts[i] as number) + (requests[i] as number)
    ports.push(...daemon.hostPorts.map((port) => ({ ...port, daemon: daemon.name })))
    running.push(daemon)
  }
  return { amounts, isEmpty: running.length === 0, ports, running }
}

/** Whether no daemon pod of this type uses one of `ports`. */
export function portsFree(row: TypeRow, ports: readonly HostPort[]): boolean {
  return ports.length === 0 || !portsClash(ports, row.daemons.ports)
}

/** The host ports of daemon pods on these types that conflict with `ports`, without duplicates. */
export function takenPorts(rows: readonly TypeRow[], ports: readonly HostPort[]): readonly DaemonPort[] {
  const clashing = rows.flatMap((row) => row.daemons.ports.filter((taken) => portsClash(ports, [taken])))
  return [...new Map(clashing.map((taken) => [JSON.stringify(taken), taken])).values()]
}
