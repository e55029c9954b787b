/** Nodes that are there, filling up as the simulation places pods (scheduling.md 6.5). */
import { labels, type Pod, type Resources } from '@tenon/api'
import {
  incompatibility,
  labelRequirements,
  type Requirements,
  requiredAlternatives,
  requirementsOf,
} from '../requirements/requirements.ts'
import { intersection } from '../requirements/requirement.ts'
import type { DaemonInput, NodeInput } from '../snapshot/input.ts'
import { type HostPort, portsClash } from './host-ports.ts'
import { fits, podRequests, sum } from './pod-resources.ts'
import type { PodShape } from './shape.ts'
import { hardTaints, untolerated } from './taints.ts'
import type { Topology } from './topology/topology.ts'

const nothingUndefined: ReadonlySet<string> = new Set()

/** One existing node during a simulation. */
export class NodeFill {
  readonly input: NodeInput
  readonly pods: Pod[] = []
  #remaining: Resources
  #requirements: Requirements
  #hostPorts: readonly HostPort[]

  constructor(input: NodeInput, daemons: readonly DaemonInput[]) {
    this.input = input
    this.#requirements = labelRequirements({
      ...input.labels,
      [labels.hostname]: input.labels[labels.hostname] ?? input.name,
    })
    this.#remaining = withoutExpectedDaemons(input, this.#requirements, daemons)
    this.#hostPorts = input.usedHostPorts
  }

  /** Whether a pod of this shape fits, rules about other pods apart; once false, it stays false. */
  accepts(shape: PodShape): boolean {
    return (
      untolerated(this.input.taints, shape.tolerations).length === 0 &&
      !portsClash(shape.hostPorts, this.#hostPorts) &&
      fits(shape.requests, this.#remaining) &&
      incompatibility(this.#requirements, shape.requirements.preferred, nothingUndefined) === undefined
    )
  }

  /** Places the pod if the rules about other pods allow it now. */
  tryPlace(pod: Pod, shape: PodShape, topology: Topology): boolean {
    const wanted = narrowed(this.#requirements, shape.requirements.preferred)
    const added = topology.narrow(shape, wanted, true)
    if ('kind' in added || incompatibility(wanted, added, nothingUndefined) !== undefined) return false
    this.#requirements = narrowed(wanted, added)
    this.#take(pod, shape)
    topology.record(shape, () => ({ requirements: this.#requirements, taints: this.input.taints }))
    return true
  }

  #take(pod: Pod, shape: PodShape): void {
    this.pods.push(pod)
    const remaining: Record<string, number> = { ...this.#remaining }
    for (const name in shape.requests)
      remaining[name] = (remaining[name] ?? 0) - (shape.requests[name] as number)
    this.#remaining = remaining
    if (shape.hostPorts.length > 0) this.#hostPorts = [...this.#hostPorts, ...shape.hostPorts]
  }
}

/** A real node keeps its own keys; only their values narrow. */
function narrowed(have: Requirements, want: Requirements): Requirements {
  if (want.size === 0) return have
  return requirementsOf(
    [...have.values()].map((set) => {
      const wanted = want.get(set.key)
      return wanted === undefined ? set : intersection(set, wanted)
    }),
  )
}

function withoutExpectedDaemons(
  input: NodeInput,
  requirements: Requirements,
  daemons: readonly DaemonInput[],
): Resources {
  const expected = daemons
    .filter(
      (daemon) =>
        untolerated(hardTaints(input.taints), daemon.spec.tolerations ?? []).length === 0 &&
        requiredAlternatives(daemon.spec).some(
          (wanted) => incompatibility(requirements, wanted, nothingUndefined) === undefined,
        ),
    )
    .map((daemon) => podRequests(daemon.spec))
    .reduce(sum, {})
  const remaining: Record<string, number> = { ...input.available }
  for (const [name, amount] of Object.entries(expected)) {
    const missing = Math.max(0, amount - (input.daemonRequests[name] ?? 0))
    if (name in remaining) remaining[name] = (remaining[name] as number) - missing
  }
  return remaining
}

/** Initialized nodes first, then by name. */
export function nodeOrder(a: NodeInput, b: NodeInput): number {
  if (a.initialized !== b.initialized) return a.initialized ? -1 : 1
  return a.name < b.name ? -1 : 1
}
