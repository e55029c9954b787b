/** Permissions in a separate management cluster, for `tenon preflight` (cluster-api.md 15). */
import { type AccessReviews, type AccessRight, createAccessReviews, isKubeError } from '@tenon/kube'
import type { CloudOperation, OperationAnswer, PreflightModule } from '@tenon/provider'
import { readHubSettings } from './hub/settings.ts'
import { hubRights, rightText } from './rights.ts'

export const preflightModule: PreflightModule = {
  open: ({ env, clock, logger, userAgent }) => {
    const { config, scope } = readHubSettings(env, clock, logger)
    const fixes = {
      credentialsFix:
        'check the kubeconfig of CLUSTER_API_KUBECONFIG, or CLUSTER_API_TOKEN, and that it has not expired',
      grantFix: (operations: readonly string[]) =>
        `grant ${operations.join(', ')} in the management cluster: docs/cluster-api/hub-rbac.yaml has all of them`,
    }
    // The cluster is its own hub: these permissions are among those of the service account.
    if (config === undefined) return { hosts: [], operations: [], ...fixes }
    const reviews = createAccessReviews({ transport: config.transport, clock, userAgent })
    return {
      hosts: [new URL(config.server).hostname],
      operations: hubRights(scope.namespace).map((right) => operationOf(reviews, right)),
      ...fixes,
    }
  },
}

function operationOf(reviews: AccessReviews, right: AccessRight): CloudOperation {
  return {
    name: rightText(right),
    attempt: async (signal): Promise<OperationAnswer> => {
      try {
        return (await reviews.isAllowed(right, undefined, signal))
          ? { kind: 'allowed' }
          : { kind: 'refused', message: 'the role of the credentials lacks it' }
      } catch (error) {
        signal.throwIfAborted()
        if (!isKubeError(error)) throw error
        return { kind: error.kind === 'unauthorized' ? 'unauthorized' : 'unknown', message: error.message }
      }
    },
  }
}
