import { stringify } from 'yaml'
import type { Credentials } from './tls.ts'

/** What a kubeconfig needs to know. */
export interface KubeconfigOptions {
  /** `https://127.0.0.1:6443`. */
  readonly server: string
  readonly credentials: Credentials
  /** Name of cluster, user and context; `tenon` when absent. */
  readonly name?: string
}

/** The administrator's kubeconfig. It holds credentials: write it readable by its owner only. */
export function kubeconfigYaml({ server, credentials, name = 'tenon' }: KubeconfigOptions): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [
      {
        name,
        cluster: {
          server,
          'certificate-authority-data': base64(credentials.certificateAuthority.certificate),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    users: [{ name, user: { token: credentials.adminToken.reveal() } }],
  })
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
