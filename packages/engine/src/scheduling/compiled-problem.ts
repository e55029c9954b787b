/** A problem compiled once: shapes, templates and everything else that no placement changes. */
import {
  difference,
  type InstanceType,
  labels,
  normalizedLabel,
  ownValue,
  podRequests,
  type Resources,
} from '@tenon/api'
import { Interrupted, Pace, type SchedulingControl } from './pace.ts'
import { labelRequirements } from '../requirements/requirements.ts'
import { nodeSelection } from '../requirements/node-selection.ts'
import { RequirementStates } from '../requirements/states.ts'
import { compareText } from '../input/compare-text.ts'
import { hostNames } from './problem/spec-reading.ts'
import type { Problem } from './problem/problem.ts'
import { problemText } from '../input/problem-text.ts'
import type { MalformedObject, PoolWithoutTypes } from '../input/result.ts'
import { CompiledDevices } from './devices/device-allocator.ts'
import { ServedResources } from './devices/served-resources.ts'
import { attachmentAmounts, Attachments } from './pods/attachments.ts'
import { ClaimClasses } from './claims/claim-class.ts'
import { ClaimFinisher } from './claims/finished-claims.ts'
import type { PackingCache } from './packing/packing-cache.ts'
import type { TypeReader } from './types/instance-rows.ts'
import { readLabels } from './nodes/node-fill.ts'
import { type PodShape, PodShapes } from './pods/pod-shape.ts'
import {
  type CompiledDaemon,
  compileDaemon,
  type CompiledPool,
  compilePool,
  compileTemplate,
  confinements,
  poolOrder,
  roomsOf,
  SharedRows,
  type Template,
  type TemplateContext,
} from './claims/pool-template.ts'
import { ResourceSpace } from './pods/resource-space.ts'
import { DomainUniverse } from './topology/domains.ts'
import type { Launch } from './topology/node-domains.ts'
import { unavailableOfferings, type UnavailableRow, unavailableRowsOf } from './claims/unavailable-rows.ts'

export class CompiledProblem {
  readonly problem: Problem
  readonly pace: Pace
  readonly states = new RequirementStates()
  readonly space: ResourceSpace
  readonly attachments: Attachments
  readonly classes: ClaimClasses
  readonly finisher: ClaimFinisher
  readonly packings: PackingCache
  readonly daemons: readonly CompiledDaemon[]
  /** If absent, pods that use ResourceClaims are unschedulable. */
  readonly devices: CompiledDevices | undefined
  readonly servedResources: ServedResources
  /** In the order in which they are tried. */
  readonly templates: readonly Template[]
  readonly universe: DomainUniverse
  /** By index of the problem's shapes; undefined for invalid pods. */
  readonly shapes: readonly (PodShape | undefined)[]
  /** Label keys that pods may narrow on their nodes. */
  readonly podKeys: ReadonlySet<string>
  /** Label keys that some rule names about existing nodes, without the host name. */
  readonly nodeKeys: ReadonlySet<string>
  readonly poolsWithoutTypes: PoolWithoutTypes[] = []
  /** The pools of {@link poolsWithoutTypes}. */
  readonly emptyPools: CompiledPool[] = []
  readonly malformed: MalformedObject[] = []
  /** What is wrong with the pods of a shape, by index of the shape. */
  readonly malformedShapes = new Map<number, string>()
  #onTheirWay: readonly Launch[] | undefined
  #podsByShape: readonly { readonly shape: PodShape; readonly pods: number }[] | undefined
  readonly #rows = new SharedRows()
  readonly #poolIndex = new Map<Template, number>()
  readonly #poolOf = new Map<Template, CompiledPool>()
  readonly #unavailableRows = new Map<CompiledPool, readonly UnavailableRow[]>()
  /** The requests of each shape, or what is wrong with them. */
  readonly #requests: readonly (Resources | string)[]

  /**
   * @param reader cache of instance types, kept from one problem to the next.
   * @param packings cache of packings, kept likewise.
   * @throws Interrupted when `control` stops the decision.
   */
  constructor(problem: Problem, reader: TypeReader, packings: PackingCache, control: SchedulingControl) {
    this.problem = problem
    this.pace = new Pace(control)
    this.packings = packings
    this.space = new ResourceSpace(reader.vectors)
    this.devices = problem.devices && new CompiledDevices(problem.devices)
    this.attachments = new Attachments(problem.attachLimits, problem.pools, this.space)
    this.#requests = problem.shapes.map(({ spec, status, attachments }) => {
      try {
        return {
          ...podRequests(spec, status, problem.policy.resizedRequests),
          ...attachmentAmounts(attachments),
        }
      } catch (error) {
        return problemText(error)
      }
    })
    this.servedResources = new ServedResources(problem.devices?.extendedResources, this.#requests, this.space)
    this.daemons = this.#compileDaemons()
    const pools = this.#compilePools(reader)
    this.#learnResources(pools)
    this.templates = this.#compileTemplates(pools)
    this.shapes = this.#compileShapes(
      new PodShapes(
        this.states,
        this.space,
        this.servedResources,
        pools.some(hasSoftTaint),
        problem.devices !== undefined,
      ),
    )
    this.universe = new DomainUniverse(pools, problem.policy.wellKnownLabels, (pool) =>
      roomsOf(pool, this.#templateContext()),
    )
    this.podKeys = this.#keysOfPods()
    this.nodeKeys = this.#labelKeys()
    this.classes = new ClaimClasses(this.states, problem.policy)
    this.finisher = new ClaimFinisher(
      this.states,
      this.classes,
      this.space,
      this.servedResources,
      problem.policy,
    )
  }

  /** Launched nodes without a Node object yet. */
  get onTheirWay(): readonly Launch[] {
    const { nodes, topologyNodes } = this.problem
    return (this.#onTheirWay ??= nodes
      .filter(({ name }) => !topologyNodes.has(name))
      .map((node) => ({
        state: this.states.idOf(labelRequirements(readLabels(node.labels, this.nodeKeys))),
        taints: node.taints,
      })))
  }

  /** The shape of a valid pod. */
  shapeOf(pod: number): PodShape {
    return this.shapes[this.problem.shapeOf[pod] as number] as PodShape
  }

  /** Nodes that are launched but not registered yet. */
  get podsByShape(): readonly { readonly shape: PodShape; readonly pods: number }[] {
    return (this.#podsByShape ??= this.#countPods())
  }

  #countPods(): readonly { readonly shape: PodShape; readonly pods: number }[] {
    const counts = new Int32Array(this.shapes.length)
    for (const shape of this.problem.shapeOf) if (shape >= 0) counts[shape] = (counts[shape] as number) + 1
    return this.shapes.flatMap((shape, index) =>
      shape === undefined ? [] : [{ shape, pods: counts[index] as number }],
    )
  }

  /** CPU request of a pod in millicores; 0 for invalid pods. */
  cpuOf(pod: number): number {
    const shape = this.shapes[this.problem.shapeOf[pod] as number]
    return shape?.amounts[this.space.indexOf('cpu')] ?? 0
  }

  /** Values of a label that existing nodes have or new ones could have, in order. */
  domainsOf(key: string): readonly string[] {
    const values = new Set<string>(this.universe.domains(key, { alternatives: [], tolerations: undefined }))
    for (const { name, labels: own } of this.problem.nodes) {
      const value = key === labels.hostname ? (ownValue(own, key) ?? name) : ownValue(own, key)
      if (value !== undefined) values.add(value)
    }
    return [...values].toSorted(compareText)
  }

  /** Index of a template's NodePool in the input. */
  poolIndexOf(template: Template): number {
    return this.#poolIndex.get(template) ?? -1
  }

  /** The NodePool of a template. */
  poolOf(template: Template): CompiledPool {
    return this.#poolOf.get(template) as CompiledPool
  }

  /** The unavailable offerings of a pool. */
  unavailableRows(pool: CompiledPool): readonly UnavailableRow[] {
    let known = this.#unavailableRows.get(pool)
    if (known === undefined) {
      known = unavailableRowsOf(pool, this.#templateContext())
      this.#unavailableRows.set(pool, known)
    }
    return known
  }

  /**
   * Valid pods, large ones first, then the oldest, then by UID (scheduling.md 6.1). Pods of buffers come last, so that they
   * never take room from real pods (buffers-and-dra.md 2.6).
   */
  order(): readonly number[] {
    const pods: number[] = []
    for (let pod = 0; pod < this.problem.shapeOf.length; pod++) if (this.isReadable(pod)) pods.push(pod)
    return pods.sort(this.inOrder)
  }

  /** Whether the pod is valid. */
  isReadable(pod: number): boolean {
    return this.shapes[this.problem.shapeOf[pod] as number] !== undefined
  }

  /** Compares two valid pods by {@link order}. */
  readonly inOrder = (a: number, b: number): number => {
    const { created, uids } = this.problem
    const [shapeA, shapeB] = [this.shapeOf(a), this.shapeOf(b)]
    const isAlike = shapeA === shapeB
    return (
      (isAlike
        ? 0
        : Number(isOfBuffer(shapeA)) - Number(isOfBuffer(shapeB)) ||
          this.#amount(shapeB, this.#cpu) - this.#amount(shapeA, this.#cpu) ||
          this.#amount(shapeB, this.#memory) - this.#amount(shapeA, this.#memory)) ||
      compareText(created[a], created[b]) ||
      compareText(uids[a], uids[b])
    )
  }

  get #cpu(): number {
    return this.space.indexOf('cpu')
  }

  get #memory(): number {
    return this.space.indexOf('memory')
  }

  #amount({ amounts }: PodShape, resource: number): number {
    return resource < 0 ? 0 : (amounts[resource] as number)
  }

  /** Splits valid pods into those of buffers and all others, keeping their order. */
  withoutBufferPods(pods: readonly number[]): {
    readonly ordinary: readonly number[]
    readonly ofBuffers: readonly number[]
  } {
    const isForRoom = (pod: number) => isOfBuffer(this.shapeOf(pod))
    if (!pods.some(isForRoom)) return { ordinary: pods, ofBuffers: [] }
    return { ordinary: pods.filter((pod) => !isForRoom(pod)), ofBuffers: pods.filter(isForRoom) }
  }

  /** Invalid pods, with what is wrong. */
  unreadable(): ReadonlyMap<number, string> {
    const { malformed, shapeOf } = this.problem
    if (this.malformedShapes.size === 0) return malformed
    const all = new Map(malformed)
    for (const [pod, shape] of shapeOf.entries()) {
      const problem = this.malformedShapes.get(shape)
      if (problem !== undefined) all.set(pod, problem)
    }
    return all
  }

  #compileDaemons(): readonly CompiledDaemon[] {
    const hostOf = hostNames(this.problem.nodes, this.problem.topologyNodes)
    return this.problem.daemons.flatMap((daemon) => {
      try {
        return [compileDaemon(daemon, hostOf)]
      } catch (error) {
        this.malformed.push({ kind: 'DaemonSet', name: daemon.name, problem: problemText(error) })
        return []
      }
    })
  }

  #compilePools(reader: TypeReader): readonly CompiledPool[] {
    const pools: CompiledPool[] = []
    // Several pools often sell the same types: what follows from these is worked out once for each list.
    const reported = new Set<InstanceType>()
    const lists = new Set<CompiledPool['types']>()
    for (const input of this.problem.pools) {
      try {
        const pool = compilePool(input, reader, (type, problem) => {
          if (reported.has(type)) return
          reported.add(type)
          this.malformed.push({ kind: 'InstanceType', name: nameOf(type), problem: problemText(problem) })
        })
        const types = [...lists].find((each) => sameItems(each, pool.types)) ?? pool.types
        lists.add(types)
        pools.push({ ...pool, types })
      } catch (error) {
        const name = input.nodePool.metadata?.name ?? ''
        this.malformed.push({ kind: 'NodePool', name, problem: problemText(error) })
      }
    }
    return pools.toSorted((a, b) => poolOrder(a.input.nodePool, b.input.nodePool))
  }

  #compileTemplates(pools: readonly CompiledPool[]): readonly Template[] {
    const context = this.#templateContext()
    const templates: Template[] = []
    for (const pool of pools) {
      const template = compileTemplate(pool, templates.length, context)
      if ('kind' in template) {
        this.emptyPools.push(pool)
        const unavailable = unavailableOfferings(unavailableRowsOf(pool, context))
        this.poolsWithoutTypes.push({
          nodePool: pool.input.nodePool.metadata.name,
          becauseOfMinValues: template.becauseOfMinValues,
          ...(unavailable.length > 0 && { unavailable }),
        })
      } else {
        const index = this.problem.pools.indexOf(pool.input)
        const add = (each: Template, of: CompiledPool) => {
          this.#poolOf.set(each, of)
          this.#poolIndex.set(each, index)
          templates.push(each)
        }
        add(template, pool)
        for (const requirements of confinements(pool, template)) {
          const confined = { ...pool, requirements }
          const compiled = compileTemplate(confined, templates.length, context)
          if (!('kind' in compiled)) add({ ...compiled, isConfined: true }, confined)
        }
      }
    }
    return templates
  }

  #templateContext(): TemplateContext {
    const { states, space, daemons, attachments, servedResources, problem } = this
    const rows = this.#rows
    const quotas = problem.quotas.flatMap(({ limits, selector, usage }, quota) => {
      const selection = nodeSelection(selector)
      const left = difference(limits, usage)
      return selection === undefined ? [] : [{ quota, selection, left, nodes: problem.shapeOf.length }]
    })
    return { states, rows, space, daemons, attachments, servedResources, policy: problem.policy, quotas }
  }

  #compileShapes(shapes: PodShapes): readonly (PodShape | undefined)[] {
    const firstPods = new Map<number, number>()
    for (const [pod, shape] of this.problem.shapeOf.entries())
      if (!firstPods.has(shape)) firstPods.set(shape, pod)
    const compiled = this.problem.shapes.map((source, index) => {
      const requests = this.#requests[index]
      this.pace.about(firstPods.get(index) ?? -1)
      this.pace.step()
      try {
        if (typeof requests === 'object') return shapes.shapeOf(source, requests)
        this.malformedShapes.set(index, requests ?? '')
      } catch (error) {
        if (error instanceof Interrupted) throw error
        this.malformedShapes.set(index, problemText(error))
      }
      return undefined
    })
    this.pace.about(-1)
    return compiled
  }

  /** Adds every resource to the space, before vectors are built. */
  #learnResources(pools: readonly CompiledPool[]): void {
    for (const types of new Set(pools.map((pool) => pool.types)))
      for (const { type, groups } of types) {
        this.space.add(type.capacity)
        for (const { allocatable } of groups) this.space.add(allocatable)
      }
    for (const { requests } of this.daemons) this.space.add(requests)
    for (const { available, daemonRequests } of this.problem.nodes) {
      this.space.add(available)
      this.space.add(daemonRequests)
    }
    for (const requests of this.#requests) if (typeof requests === 'object') this.space.add(requests)
  }

  #keysOfPods(): ReadonlySet<string> {
    const keys = new Set<string>()
    for (const shape of this.shapes) if (shape !== undefined) collectKeys(shape, keys)
    for (const { volumeAlternatives } of this.problem.shapes)
      for (const { key } of volumeAlternatives.flat()) keys.add(normalizedLabel(key))
    for (const { topology } of this.problem.podGroups)
      if (topology !== undefined) keys.add(normalizedLabel(topology.key))
    return keys
  }

  /** Label keys that some rule names about existing nodes. */
  #labelKeys(): ReadonlySet<string> {
    const keys = new Set(this.podKeys)
    for (const { alternatives } of this.daemons)
      for (const wanted of alternatives) for (const key of wanted.keys()) keys.add(key)
    for (const { spec } of this.problem.boundShapes)
      for (const term of spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ??
        [])
        keys.add(normalizedLabel(term.topologyKey))
    keys.delete(labels.hostname)
    return keys
  }
}

const isOfBuffer = ({ origin }: PodShape): boolean => origin === 'buffer'

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index])
}

/** The name of an instance type that may be invalid. */
function nameOf(type: unknown): string {
  const { name = '' } = (type ?? {}) as { readonly name?: unknown }
  return String(name)
}

function collectKeys({ spec }: PodShape, keys: Set<string>): void {
  const add = (key: string) => keys.add(normalizedLabel(key))
  for (const key in spec.nodeSelector) add(key)
  const { nodeAffinity, podAffinity, podAntiAffinity } = spec.affinity ?? {}
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const term of [...required, ...preferred.map((each) => each.preference)])
    for (const { key } of term.matchExpressions ?? []) add(key)
  for (const { topologyKey } of spec.topologySpreadConstraints ?? []) add(topologyKey)
  for (const kind of [podAffinity, podAntiAffinity]) {
    for (const { topologyKey } of kind?.requiredDuringSchedulingIgnoredDuringExecution ?? []) add(topologyKey)
    for (const { podAffinityTerm } of kind?.preferredDuringSchedulingIgnoredDuringExecution ?? [])
      add(podAffinityTerm.topologyKey)
  }
}

function hasSoftTaint({ taints }: CompiledPool): boolean {
  return taints.some((taint) => taint.effect === 'PreferNoSchedule')
}
