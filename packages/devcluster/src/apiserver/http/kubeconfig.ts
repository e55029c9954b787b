import { stringify } from 'yaml'
import type { Credentials } from './tls.ts'

/** The content of a kubeconfig. */
export interface KubeconfigOptions {
  /** `https://127.0.0.1:6443`. */
  readonly server: string
  readonly credentials: Credentials
  /** Name of cluster, user and context; default `tenon`. */
  readonly name?: string
}

/** The administrator's kubeconfig. It contains credentials, so only its owner may read the file. */
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
