/** Checks that the cluster is the one that the Lease names. */
import { kinds } from '@tenon/api'
import { identityAnnotation, identityNamespace } from '@tenon/kube'
import type { Check } from '../check.ts'

export const identity: Check = {
  name: 'identity',
  run: async ({ kube, installation: { namespace, leaseName } }, signal) => {
    const [own, lease] = await Promise.all([
      kube.get(kinds.namespace, identityNamespace, { signal }),
      kube.get(kinds.lease, { namespace, name: leaseName }, { signal }),
    ])
    const uid = own?.metadata.uid ?? 'unknown, as it has no namespace kube-system'
    const stored = lease?.metadata.annotations?.[identityAnnotation]
    if (stored === undefined)
      return { summary: `the cluster is ${uid}; no controller has stored its identity yet`, findings: [] }
    if (stored === uid)
      return { summary: `the cluster is ${uid}, as Lease ${namespace}/${leaseName} says`, findings: [] }
    return {
      summary: '',
      findings: [
        {
          status: 'fail',
          message: `Lease ${namespace}/${leaseName} is that of cluster ${stored}, and this is cluster ${uid}: the controller removes nothing`,
          fix: 'check the kubeconfig; if this is the right cluster, start the controller once with --accept-cluster-identity',
        },
      ],
    }
  },
}
