/** Only the cluster's own API is used, so preflight checks whether it serves NodeGroups. */
import { isKubeError, isNotServed } from '@tenon/kube'
import type { OperationAnswer, PreflightModule } from '@tenon/provider'
import { nodeGroupKind } from './nodegroup/types.ts'

const kind = `${nodeGroupKind.plural}.${nodeGroupKind.group}`

export const preflightModule: PreflightModule = {
  open: ({ kube }) => ({
    hosts: [],
    operations: [
      {
        name: `list ${kind}`,
        attempt: async (signal): Promise<OperationAnswer> => {
          try {
            await kube.list(nodeGroupKind, { fieldSelector: 'metadata.name=tenon-asks', signal })
            return { kind: 'allowed' }
          } catch (error) {
            signal.throwIfAborted()
            if (!isKubeError(error)) throw error
            if (isNotServed(error))
              return { kind: 'refused', message: 'the cluster does not serve NodeGroups' }
            return { kind: 'unknown', message: error.message }
          }
        },
      },
    ],
    credentialsFix: 'check the kubeconfig',
    grantFix: () => 'use a cluster of Clever Kubernetes Engine, whose API has NodeGroups, or ask its support',
  }),
}
