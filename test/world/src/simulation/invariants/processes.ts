/** Exactly one controller leads at a time, and handover is fast. */
import { kinds } from '@tenon/api'
import type { OperatorProcess } from '../process/operator-process.ts'
import type { Invariant, Scene } from './scene.ts'

function holderOf({ world }: Pick<Scene, 'world'>): string {
  const lease = world.cluster.server.local.get(kinds.lease, 'kube-system', 'karpenter-leader-election')
  return lease?.spec?.holderIdentity ?? ''
}

/** Only the holder of the lease writes to the API server and the cloud. */
export const onlyTheLeaderWrites: Invariant = (scene) => {
  const check = (process: OperatorProcess, what: string): void => {
    const holder = holderOf(scene)
    if (holder !== process.name)
      scene.violate('onlyTheLeaderWrites', `${process.name} does ${what}, ${holder || 'nobody'} leads`)
  }
  return {
    apiWrite({ process, plural, method, name = '' }) {
      if (plural !== 'leases' && plural !== 'events') check(process, `${method} ${plural}/${name}`)
    },
    cloudWrite({ process, request }) {
      check(process, `${request.method} ${request.path.split('?')[0] ?? ''}`)
    },
  }
}

/** A process that ends cleanly releases the lease, so that the next one need not wait until it expires. */
export const leaseGivenBack: Invariant = (scene) => {
  const failedBefore = new Map<OperatorProcess, number>()
  return {
    ending(process) {
      failedBefore.set(process, scene.failedRequests())
    },
    ended(process) {
      // A request that never arrived releases nothing.
      const isSpoilt = failedBefore.get(process) !== scene.failedRequests()
      failedBefore.delete(process)
      if (!isSpoilt && holderOf(scene) === process.name)
        scene.violate('leaseGivenBack', `${process.name} has ended and still holds the lease`)
    },
  }
}
