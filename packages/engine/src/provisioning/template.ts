/** A NodePool as the place new claims come from (scheduling.md 5, 7.2, 10). */
import { labels, nodeClassLabel, type NodePool, parseResources, type Resources, type Taint } from '@tenon/api'
import {
  incompatibility,
  firstConflict,
  merged,
  parseRequirements,
  requiredAlternatives,
  requirementsOf,
  type Requirements,
} from '../requirements/requirements.ts'
import { oneOf } from '../requirements/requirement.ts'
import type { DaemonInput, PoolInput, SchedulingPolicy } from '../snapshot/input.ts'
import { type HostPort, hostPortsOf, portsClash } from './host-ports.ts'
import { type CompiledType, compileType, filterTypes, unmetMinValues } from './instance-types.ts'
import { difference, larger, podRequests, sum } from './pod-resources.ts'
import { hardTaints, untolerated } from './taints.ts'

/** Labels that hold on every node in the end and serve daemon pods that select on them; never emitted. */
export const simulationOnlyLabels: readonly string[] = [labels.registered, labels.initialized]

export interface Template {
  readonly nodePool: NodePool
  /** Labels every claim of this pool carries. */
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: Requirements
  readonly types: readonly CompiledType[]
  readonly overheadOf: (type: CompiledType) => Resources
  /** The daemon pods' host ports on this type. */
  readonly daemonPortsOf: (type: CompiledType) => readonly HostPort[]
}

/** Pools in the order in which they are tried: weight, then name, both descending. */
export function poolOrder(a: NodePool, b: NodePool): number {
  const byWeight = (b.spec.weight ?? 0) - (a.spec.weight ?? 0)
  return byWeight !== 0 ? byWeight : a.metadata.name < b.metadata.name ? 1 : -1
}

/** A pool with its requirements worked out, whether or not it can launch anything. */
export interface CompiledPool {
  readonly input: PoolInput
  readonly labels: Readonly<Record<string, string>>
  readonly taints: readonly Taint[]
  readonly requirements: Requirements
  readonly types: readonly CompiledType[]
}

export function compilePool(input: PoolInput): CompiledPool {
  const { metadata, spec } = input.nodePool.spec.template
  const ref = spec.nodeClassRef
  const templateLabels = {
    ...metadata?.labels,
    [labels.nodePool]: input.nodePool.metadata.name,
    [nodeClassLabel(ref)]: ref.name,
  }
  const requirements = merged(
    parseRequirements(spec.requirements),
    requirementsOf([
      ...Object.entries(templateLabels).map(([key, value]) => oneOf(key, value)),
      ...simulationOnlyLabels.map((key) => oneOf(key, 'true')),
    ]),
  )
  return {
    input,
    labels: templateLabels,
    taints: spec.taints ?? [],
    requirements,
    types: input.instanceTypes.map(compileType),
  }
}

/** The template of a pool, or undefined when its requirements leave no type that can be bought. */
export function compileTemplate(
  pool: CompiledPool,
  daemons: readonly DaemonInput[],
  policy: SchedulingPolicy,
): Template | undefined {
  const { requirements, taints } = pool
  const none = () => ({})
  const { remaining } = filterTypes(pool.types, requirements, {}, none, policy.wellKnownLabels)
  if (remaining.length === 0) return undefined
  if (policy.minValues === 'Strict' && unmetMinValues(remaining, requirements).size > 0) return undefined
  const byType = new Map(
    remaining.map((type) => [type, daemonsOn(type, daemons, taints, requirements, policy.wellKnownLabels)]),
  )
  return {
    nodePool: pool.input.nodePool,
    labels: pool.labels,
    taints,
    requirements,
    types: remaining,
    overheadOf: (type) => byType.get(type)?.requests ?? {},
    daemonPortsOf: (type) => byType.get(type)?.ports ?? [],
  }
}

interface DaemonLoad {
  readonly requests: Resources
  readonly ports: readonly HostPort[]
}

function daemonsOn(
  type: CompiledType,
  daemons: readonly DaemonInput[],
  taints: readonly Taint[],
  requirements: Requirements,
  wellKnown: ReadonlySet<string>,
): DaemonLoad {
  const running = daemons.filter((daemon) => {
    if (untolerated(hardTaints(taints), daemon.spec.tolerations ?? []).length > 0) return false
    return requiredAlternatives(daemon.spec).some(
      (wanted) =>
        incompatibility(requirements, wanted, wellKnown) === undefined &&
        firstConflict(type.requirements, wanted) === undefined,
    )
  })
  return {
    requests: running.map((daemon) => podRequests(daemon.spec)).reduce(sum, {}),
    ports: running.flatMap((daemon) => hostPortsOf(daemon.spec)),
  }
}

/** What one pool may still launch (scheduling.md 10). */
export class PoolBudget {
  readonly #limits: Resources
  #remaining: Resources

  constructor(pool: PoolInput) {
    this.#limits = parseResources(pool.nodePool.spec.limits)
    this.#remaining = difference(this.#limits, pool.usage)
  }

  get nodesExhausted(): boolean {
    return this.#remaining['nodes'] === 0
  }

  /** The types that would not exceed any limit. */
  affordable(types: readonly CompiledType[]): readonly CompiledType[] {
    const names = Object.keys(this.#limits)
    if (names.length === 0) return types
    return types.filter((type) =>
      names.every((name) => capacityOf(type, name) <= (this.#remaining[name] as number)),
    )
  }

  /** Books a new claim at the largest of its types. */
  charge(types: readonly CompiledType[]): void {
    if (Object.keys(this.#limits).length === 0) return
    const largest = types.map((type) => type.type.capacity).reduce(larger, {})
    this.#remaining = difference(this.#remaining, { ...largest, nodes: 1 })
  }
}

function capacityOf(type: CompiledType, name: string): number {
  return name === 'nodes' ? 1 : (type.type.capacity[name] ?? 0)
}

/** Whether the pod's host ports are free of daemon pods on this type. */
export function portsFree(template: Template, type: CompiledType, ports: readonly HostPort[]): boolean {
  return ports.length === 0 || !portsClash(ports, template.daemonPortsOf(type))
}
