/** Bugs of CapacityBuffers. */
import type { Pod } from '@tenon/api'
import type { Operator, SchedulingDecider } from '@tenon/operator'

/** Every second pod of a buffer gets the place of the previous one. */
export function sellsRoomTwice(inner: SchedulingDecider): SchedulingDecider {
  return {
    async decide(input, options) {
      const partners = new Map<Pod, string>()
      for (const pod of input.pods) {
        const [, buffer = '', number = ''] = /^(.*)-(\d+)$/.exec(pod.metadata.uid ?? '') ?? []
        const isOfBuffer = input.origins?.get(pod.metadata.uid ?? '') === 'buffer'
        if (isOfBuffer && Number(number) % 2 === 0) partners.set(pod, `${buffer}-${Number(number) - 1}`)
      }
      const pods = input.pods.filter((pod) => !partners.has(pod))
      const result = await inner.decide({ ...input, pods }, options)
      if (result.room === undefined) return result
      const nodes = new Map(result.room.placements.map(({ pod, node }) => [pod.metadata.uid, node]))
      const more = Array.from(partners, ([pod, partner]) => ({ pod, node: nodes.get(partner) })).flatMap(
        ({ pod, node }) => (node === undefined ? [] : [{ pod, node }]),
      )
      return {
        ...result,
        room: { ...result.room, placements: [...result.room.placements, ...more] },
      }
    },
    examine: (input, question, options) => inner.examine(input, question, options),
    close: () => inner.close(),
  }
}

/** The search for empty nodes ignores the capacity that is kept on them. */
export function overlooksKeptRoom({ state: { buffers } }: Operator): void {
  buffers.keptOn = () => []
}

/** The pods of a node include its placeholder pods. */
export function takesRoomForPods({ caches: { pods }, state }: Operator): void {
  const byIndex = pods.byIndex.bind(pods)
  pods.byIndex = (index, value) => {
    const found = byIndex(index, value)
    if (index !== 'node') return found
    const providerID = state.stateNodes().find(({ name }) => name === value)?.providerID ?? ''
    const room = state.buffers.keptOn(providerID).flatMap((kept) => kept.pods)
    return [...found, ...room.map((pod) => ({ ...pod, spec: { ...pod.spec, nodeName: value } }))]
  }
}

/** The capacity of a deleted buffer is still kept. */
export function keepsRoomOfDeleted({ state: { buffers } }: Operator): void {
  buffers.drop = () => false
}
