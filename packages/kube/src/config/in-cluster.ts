/** The in-cluster configuration of a pod. */
import { existsSync, readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { KubeConfigContent } from './kubeconfig-files.ts'
import { KubeConfigError } from './kubeconfig-errors.ts'

/** The folder of the service account's files. */
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * The configuration of this pod, or `undefined` outside of a pod.
 * @param needsToken false if another token than that of the service account is used.
 */
export function inClusterContent(
  env: Readonly<Record<string, string | undefined>>,
  {
    folder = serviceAccountFolder,
    needsToken = true,
  }: { readonly folder?: string; readonly needsToken?: boolean } = {},
): KubeConfigContent | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = env['KUBERNETES_SERVICE_PORT'] ?? ''
  if (host === '' || port === '') return undefined
  const tokenFile = join(folder, 'token')
  if (needsToken && !existsSync(tokenFile)) {
    throw new KubeConfigError(
      `the pod has no service account token at ${tokenFile}: ` +
        'set automountServiceAccountToken: true, or name a file with --kubeconfig',
    )
  }
  const namespaceFile = join(folder, 'namespace')
  const namespace = existsSync(namespaceFile) ? readFileSync(namespaceFile, 'utf8').trim() : undefined
  return {
    clusters: [
      {
        name: 'in-cluster',
        caFile: join(folder, 'ca.crt'),
        server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
        skipTLSVerify: false,
      },
    ],
    users: [{ name: 'in-cluster', authProvider: { name: 'tokenFile', config: { tokenFile } } }],
    contexts: [
      {
        name: 'in-cluster',
        cluster: 'in-cluster',
        user: 'in-cluster',
        ...(namespace !== undefined && { namespace }),
      },
    ],
    currentContext: 'in-cluster',
    source: 'the service account of this pod',
    files: [],
  }
}
