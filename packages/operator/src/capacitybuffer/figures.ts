/** What the room of CapacityBuffers comes to, and costs. */
import { ownValue, type Pod, type PricePerHour, type Resources } from '@tenon/api'
import { podRequests } from '@tenon/engine'
import { allocatableOf, type StateNode } from '../cluster/nodes/state-node.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What this file reads. */
type Sources = Pick<ClusterState, 'buffers' | 'parsed' | 'poolCosts' | 'stateNodes'>

export interface BufferFigures {
  readonly namespace: string
  readonly name: string
  /** Pods that there is to be room for. */
  readonly wanted: number
  /** Pods for which there is room on nodes that are there or on their way. */
  readonly kept: number
  /** What that part of the nodes costs; undefined when the price of one of them is not known. */
  readonly pricePerHour: PricePerHour
}

/** Of every buffer that keeps room, as the last pass found it. */
export function bufferFigures(state: Sources): readonly BufferFigures[] {
  const sources = state.buffers.sources()
  if (sources.length === 0) return []
  const totals = new Map<string, { kept: number; pricePerHour: PricePerHour }>()
  const rooms = state.buffers.kept()
  for (const stateNode of state.stateNodes())
    for (const { buffer, pods } of rooms.get(stateNode.providerID) ?? []) {
      const total = totals.get(buffer) ?? { kept: 0, pricePerHour: 0 }
      const price = priceOf(state, stateNode, pods)
      totals.set(buffer, {
        kept: total.kept + pods.length,
        pricePerHour:
          price === undefined || total.pricePerHour === undefined ? undefined : total.pricePerHour + price,
      })
    }
  return sources.map(({ name, namespace, replicas: wanted }) => {
    const { kept, pricePerHour } = totals.get(`${namespace}/${name}`) ?? { kept: 0, pricePerHour: 0 }
    return { namespace, name, wanted, kept, pricePerHour }
  })
}

function priceOf(state: Sources, stateNode: StateNode, [model, ...others]: readonly Pod[]): PricePerHour {
  const { claim } = stateNode
  const price = claim && state.poolCosts.priceOf(claim)
  if (price === undefined || model === undefined) return undefined
  const share = partOf(podRequests(model.spec), allocatableOf(stateNode, state.parsed))
  return price * Math.min(1, share * (1 + others.length))
}

/** CPU and memory each stand for half of a price (ask.md 11). */
function partOf(requests: Resources, allocatable: Resources): number {
  const parts = ['cpu', 'memory'].map((name) => {
    const all = ownValue(allocatable, name) ?? 0
    return all <= 0 ? 0 : (ownValue(requests, name) ?? 0) / all
  })
  return parts.reduce((sum, part) => sum + part, 0) / parts.length
}
