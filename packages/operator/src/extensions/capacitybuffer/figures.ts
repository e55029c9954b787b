/** What the room of CapacityBuffers comes to, and costs. */
import { type Pod, podRequests, type PricePerHour, type Resources } from '@tenon/api'
import { allocatableOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { BufferFigures } from '../../metrics/figures.ts'
import type { KeptRoom } from '../../state/pods/buffer-pods.ts'
import { priceShares } from '../../state/price-shares.ts'

/** What this file reads. */
type Sources = Pick<ClusterState, 'buffers' | 'parsed' | 'pods' | 'poolCosts' | 'stateNodes'>

/** Of every buffer that keeps room, as the last pass found it. */
export function bufferFigures(state: Sources): readonly BufferFigures[] {
  const sources = state.buffers.sources()
  if (sources.length === 0) return []
  const totals = new Map<string, { kept: number; pricePerHour: PricePerHour }>()
  const rooms = state.buffers.kept()
  for (const stateNode of state.stateNodes()) {
    const room = rooms.get(stateNode.providerID) ?? []
    if (room.length === 0) continue
    const prices = pricesOf(state, stateNode, room)
    for (const [at, { buffer, pods }] of room.entries()) {
      const total = totals.get(buffer) ?? { kept: 0, pricePerHour: 0 }
      const price = prices?.[at]
      totals.set(buffer, {
        kept: total.kept + pods.length,
        pricePerHour:
          price === undefined || total.pricePerHour === undefined ? undefined : total.pricePerHour + price,
      })
    }
  }
  return sources.map(({ name, namespace, replicas: wanted }) => {
    const { kept, pricePerHour } = totals.get(`${namespace}/${name}`) ?? { kept: 0, pricePerHour: 0 }
    return { namespace, name, wanted, kept, pricePerHour }
  })
}

/** What each part of the room on an instance costs, as `tenon cost` tells it; undefined when the price is not known. */
function pricesOf(
  state: Sources,
  stateNode: StateNode,
  room: readonly KeptRoom[],
): readonly number[] | undefined {
  const { claim, node } = stateNode
  const price = claim && state.poolCosts.priceOf(claim)
  if (price === undefined) return undefined
  const used = node === undefined ? {} : state.pods.useOf(node.metadata.name).requests
  return priceShares(price, allocatableOf(stateNode, state.parsed), [
    ...room.map(({ pods: [model, ...others] }) => timesOf(model, 1 + others.length)),
    used,
  ])
}

/** What so many pods like one ask for. */
function timesOf(model: Pod | undefined, count: number): Resources {
  const requests = Object.entries(model === undefined ? {} : podRequests(model.spec))
  return Object.fromEntries(requests.map(([name, amount]) => [name, amount * count]))
}
