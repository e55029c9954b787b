import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'

/** The cluster-info of a cluster; fields are undefined until it is published. */
export interface ClusterInfo {
  /** `https://host:port` of the API server. */
  readonly endpoint: string | undefined
  /** PEM. */
  readonly certificateAuthority: string | undefined
}

/** Reads the ConfigMap `kube-public/cluster-info` of a cluster. */
export function clusterInfo(api: LocalApi): ClusterInfo {
  const kubeconfig = api.get(kinds.configMap, 'kube-public', 'cluster-info')?.data?.['kubeconfig'] ?? ''
  const authority = /^\s*certificate-authority-data:\s*(\S+)\s*$/m.exec(kubeconfig)?.[1]
  return {
    endpoint: /^\s*server:\s*(\S+)\s*$/m.exec(kubeconfig)?.[1],
    certificateAuthority: authority && Buffer.from(authority, 'base64').toString(),
  }
}
