/** Size and price of the room that CapacityBuffers keep. */
import { ownValue, type Pod, podRequests, type PricePerHour, type Resources } from '@tenon/api'
import { allocatableOf, type StateNode } from '../../state/nodes/state-node.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { BufferFigures } from '../../metrics/metrics.ts'
import type { KeptRoom } from '../../state/pods/buffer-pods.ts'

type Sources = Pick<ClusterState, 'buffers' | 'parsed' | 'pods' | 'poolCosts' | 'stateNodes'>

/** For every buffer with replicas, as of the last pass. */
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

/** Price of each part of the room on an instance, as `tenon cost` shows it; undefined if the instance has no price. */
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

/** Requests of `count` identical pods. */
function timesOf(model: Pod | undefined, count: number): Resources {
  const requests = Object.entries(model === undefined ? {} : podRequests(model.spec))
  return Object.fromEntries(requests.map(([name, amount]) => [name, amount * count]))
}

/** Counts of pods and volumes, and storage, which costs little beside the rest. */
const uncounted = /^(pods|ephemeral-storage|hugepages-.*|attachable-volumes-.*)$/

/**
 * Splits the price of an instance among its pods (ask.md 11). CPU, memory and each kind of device carry an equal part of
 * the price; pods pay by the share that they request. If requests exceed the allocatable amount, they share all of it.
 * @param asked requests of each pod.
 * @returns parts of the price per hour, in the same order.
 */
export function priceShares(
  pricePerHour: number,
  allocatable: Resources,
  asked: readonly Resources[],
): readonly number[] {
  const resources = Object.keys(allocatable).filter(
    (name) => !uncounted.test(name) && (ownValue(allocatable, name) ?? 0) > 0,
  )
  const shares = asked.map(() => 0)
  for (const resource of resources) {
    const amounts = asked.map((requests) => ownValue(requests, resource) ?? 0)
    const sum = amounts.reduce((total, amount) => total + amount, 0)
    const most = Math.max(ownValue(allocatable, resource) ?? 0, sum)
    for (const [at, amount] of amounts.entries())
      shares[at] = (shares[at] ?? 0) + (pricePerHour / resources.length) * (amount / most)
  }
  return shares
}
