/** What a server runs at its first start, so that it joins the cluster as Tenon expects. */
import { type Taint, unregisteredTaint } from '@tenon/provider'

export interface JoinSettings {
  /** URL of the API server as servers reach it. */
  readonly server: string
  /** Bootstrap token of the cluster. */
  readonly token: string
  readonly labels: Readonly<Record<string, string>>
}

/**
 * The script. The kubelet registers with the taint `karpenter.sh/unregistered`, which keeps pods away until Tenon
 * has given the Node the labels and taints of its NodeClaim; and with the provider ID by which Tenon knows whose
 * Node it is. `/run/harbour/id` is where the cloud writes the id of a server.
 */
export function userData({ server, token, labels }: JoinSettings): string {
  const labelList = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return `#!/bin/sh
exec /opt/harbour/join \\
  --server=${server} \\
  --token=${token} \\
  --provider-id=harbour://$(cat /run/harbour/id) \\
  --node-labels=${labelList.join(',')} \\
  --register-with-taints=${taintFlag(unregisteredTaint)}
`
}

function taintFlag({ key, value = '', effect }: Taint): string {
  return `${key}=${value}:${effect}`
}
