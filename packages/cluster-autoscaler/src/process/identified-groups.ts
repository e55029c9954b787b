/** Prevents removals in a cluster that is not the known one (reports-2.md 2.2). */
import type { ClusterIdentity } from '@tenon/kube'
import { decorated, NodeGroupError, type NodeGroups } from '@tenon/provider'

export function identifiedGroups(
  groups: NodeGroups,
  identity: Pick<ClusterIdentity, 'mayRemove' | 'refusal'>,
): NodeGroups {
  const assure = async () => {
    if (!(await identity.mayRemove())) throw new NodeGroupError(`no member is removed: ${identity.refusal}`)
  }
  return decorated<NodeGroups, NodeGroups>(groups, {
    deleteInstances: async (...args) => {
      await assure()
      await groups.deleteInstances(...args)
    },
    decreaseTargetSize: async (...args) => {
      await assure()
      return await groups.decreaseTargetSize(...args)
    },
  })
}
