/** Deletes no instance for a cluster that is not the one that launched it. */
import type { ClusterIdentity } from '@tenon/kube'
import { type CloudProvider, decorated, ProviderError } from '@tenon/provider'

export function identifiedProvider(
  provider: CloudProvider,
  identity: Pick<ClusterIdentity, 'mayRemove' | 'refusal'>,
): CloudProvider {
  return decorated(provider, {
    async delete(claim, signal) {
      if (!(await identity.mayRemove()))
        throw new ProviderError('other', `the instance is not deleted: ${identity.refusal}`)
      await provider.delete(claim, signal)
    },
  })
}
