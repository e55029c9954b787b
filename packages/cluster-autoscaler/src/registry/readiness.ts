/** Nodes of a group or the cluster by state (cluster-autoscaler.md 2.4). */
import type { Node } from '@tenon/api'
import type { NodeGroupIndex } from '../model.ts'
import { type NodeState, nodeState } from './node-state.ts'
import type { UnregisteredInstance } from './unregistered.ts'

/** Names of nodes; provider IDs of instances without a node. */
export interface Readiness {
  /** All nodes, in any state. */
  readonly registered: readonly string[]
  readonly ready: readonly string[]
  readonly notStarted: readonly string[]
  readonly unready: readonly string[]
  readonly suspended: readonly string[]
  readonly deleted: readonly string[]
  readonly unregistered: readonly string[]
  readonly longUnregistered: readonly string[]
}

type Lists = { -readonly [list in keyof Readiness]: string[] }

function noNodes(): Lists {
  return {
    registered: [],
    ready: [],
    notStarted: [],
    unready: [],
    suspended: [],
    deleted: [],
    unregistered: [],
    longUnregistered: [],
  }
}

export interface ReadinessInput {
  readonly nowMs: number
  readonly nodes: readonly Node[]
  readonly index: Pick<NodeGroupIndex, 'groupOf' | 'hasInstance'>
  readonly unregistered: readonly UnregisteredInstance[]
  /** Of a group; undefined = of nodes outside groups. */
  readonly maxStartupMs: (groupId: string | undefined) => number
  readonly isLong: (instance: UnregisteredInstance) => boolean
}

/** Readiness of the cluster, including nodes outside groups, and of each group with a node or instance. */
export class ClusterReadiness {
  readonly totals: Readiness
  readonly #groups = new Map<string, Lists>()

  constructor(input: ReadinessInput) {
    const totals = noNodes()
    this.totals = totals
    for (const node of input.nodes) {
      const { name } = node.metadata
      const groupId = input.index.groupOf.get(name)
      const hasInstance = input.index.hasInstance.get(name)
      const state = nodeState(node, input.nowMs, input.maxStartupMs(groupId), hasInstance)
      addNode(totals, name, state)
      if (groupId !== undefined) addNode(this.#lists(groupId), name, state)
    }
    for (const instance of input.unregistered) {
      const list = input.isLong(instance) ? 'longUnregistered' : 'unregistered'
      totals[list].push(instance.providerId)
      this.#lists(instance.groupId)[list].push(instance.providerId)
    }
  }

  /** Undefined if it has neither a node nor an instance without a node. */
  of(groupId: string): Readiness | undefined {
    return this.#groups.get(groupId)
  }

  #lists(groupId: string): Lists {
    const known = this.#groups.get(groupId)
    if (known !== undefined) return known
    const lists = noNodes()
    this.#groups.set(groupId, lists)
    return lists
  }
}

function addNode(lists: Lists, name: string, state: NodeState): void {
  lists.registered.push(name)
  lists[state].push(name)
}
