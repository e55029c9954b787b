/**
 * The state that simulations of one problem share: existing nodes, topology counts and devices. It is expensive to
 * build, so a simulation changes it in place, and its changes are rolled back to a mark.
 */
import type { NodeInput } from '../input/input.ts'
import { allowsAbsence, anyValue, has } from '../requirements/requirement.ts'
import { ClaimAdmission } from './claims/claim-admission.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { DeviceAllocator } from './devices/device-allocator.ts'
import type { NodeFill } from './nodes/node-fill.ts'
import { NodeQueue } from './nodes/node-queue.ts'
import type { PodShape } from './pods/pod-shape.ts'
import type { CompiledDaemon, Template } from './claims/pool-template.ts'
import { ExpectedPods, type TemplateDaemons } from './topology/pod-counts.ts'
import type { Launch } from './topology/node-domains.ts'
import type { TopologyMark } from './topology/pod-counts.ts'
import { PodTopology } from './topology/pod-topology.ts'

/** A point that {@link SchedulerState.rollback} returns to. */
export interface StateMark {
  readonly nodes: number
  readonly topology: TopologyMark
  readonly devices: number | undefined
}

export class SchedulerState {
  readonly compiled: CompiledProblem
  readonly nodes: NodeQueue
  readonly topology: PodTopology
  readonly devices: DeviceAllocator | undefined
  readonly #indexes: ReadonlyMap<NodeInput, number>
  readonly #byIndex: readonly (NodeFill | undefined)[]
  #admission: ClaimAdmission | undefined

  /**
   * @param order in which nodes are tried; by default initialized ones first, then by name.
   * @param launches nodes that are assumed to be launched, whatever is decided; by default those on their way.
   */
  constructor(
    compiled: CompiledProblem,
    order?: (a: NodeInput, b: NodeInput) => number,
    launches: readonly Launch[] = compiled.onTheirWay,
  ) {
    this.compiled = compiled
    const {
      problem,
      states,
      space,
      daemons,
      attachments,
      servedResources,
      universe,
      nodeKeys: keys,
    } = compiled
    const expected = new ExpectedPods(
      daemons.map(({ selectable }) => selectable),
      compiled.templates.map((template) => daemonsOf(template, compiled)),
    )
    this.topology = new PodTopology(problem, { states, universe, expected, pace: compiled.pace }, launches)
    this.topology.observe(compiled.shapes.filter((shape) => shape !== undefined))
    this.nodes = new NodeQueue(
      problem.nodes,
      {
        states,
        space,
        daemons,
        attachments,
        servedResources,
        topology: this.topology,
        keys,
        pace: compiled.pace,
      },
      order,
    )
    this.devices = compiled.devices && new DeviceAllocator(compiled.devices)
    this.#indexes = new Map(problem.nodes.map((node, index) => [node, index]))
    this.#byIndex = problem.nodes.map((node) => this.nodes.of(node))
  }

  /** Index of a node in the problem. */
  indexOf(node: NodeFill): number {
    return this.#indexes.get(node.input) ?? -1
  }

  /** The node with this index in the problem. */
  nodeAt(index: number): NodeFill {
    const node = this.#byIndex[index]
    if (node === undefined) throw new RangeError(`there is no node ${index}`)
    return node
  }

  /** The admission of claims without reservations. Its caches serve all simulations. */
  get admission(): ClaimAdmission {
    this.#admission ??= new ClaimAdmission(this.compiled, this.topology, undefined)
    return this.#admission
  }

  /** Registers the topology rules of all relaxed shapes, so that no rule starts to count too late. */
  observeRelaxations(): void {
    for (const shape of this.compiled.shapes) {
      const relaxations: PodShape[] = []
      for (let next = shape?.relaxed(); next !== undefined; next = next.relaxed()) {
        this.compiled.pace.step()
        relaxations.push(next)
      }
      this.topology.observe(relaxations)
    }
  }

  mark(): StateMark {
    return {
      nodes: this.nodes.mark(),
      topology: this.topology.mark(),
      devices: this.devices?.mark(),
    }
  }

  rollback({ nodes, topology, devices }: StateMark): void {
    if (devices !== undefined) this.devices?.rollback(devices)
    this.nodes.rollback(nodes)
    this.topology.rollback(topology)
  }

  /** Excludes a node, and the domains that only this node has; call {@link mark} before. */
  exclude(node: NodeFill): void {
    this.nodes.exclude(node)
    const seen = this.compiled.problem.topologyNodes.get(node.input.name)
    if (seen !== undefined) this.topology.exclude(seen)
  }
}

function daemonsOf(template: Template, compiled: CompiledProblem): TemplateDaemons {
  const { rows } = template
  const rowsWith = (daemon: CompiledDaemon) =>
    lacksLabel(daemon, template, compiled)
      ? 0
      : rows.reduce((count, { daemons }) => count + (daemons.running.includes(daemon) ? 1 : 0), 0)
  const counts = compiled.daemons.map(rowsWith)
  const withCount = (isWanted: (count: number) => boolean) =>
    counts.flatMap((count, index) => (isWanted(count) ? [index] : []))
  return {
    always: withCount((count) => count === rows.length),
    ever: withCount((count) => count > 0),
  }
}

/**
 * Whether the daemon selects a label that no node of the template gets: the NodePool leaves the label open, and no
 * pod asks for a value of it (scheduling.md 11.3).
 */
function lacksLabel(daemon: CompiledDaemon, template: Template, compiled: CompiledProblem): boolean {
  const { requirements } = compiled.poolOf(template)
  const isOpen = (key: string) =>
    !compiled.podKeys.has(key) &&
    !compiled.problem.policy.wellKnownLabels.has(key) &&
    !template.rows.some(({ type }) => type.requirements.has(key))
  return daemon.alternatives.every((wanted) =>
    [...wanted.values()].some((values) => {
      const given = requirements.get(values.key)
      if (given === undefined || !isOpen(values.key)) return false
      const value = allowsAbsence(given) ? undefined : anyValue(given)
      return value === undefined ? !allowsAbsence(values) : !has(values, value)
    }),
  )
}
