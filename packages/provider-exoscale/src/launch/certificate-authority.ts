import { kinds } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'

/**
 * The cluster's certificate authority as PEM: from the public cluster-info, else from the bundle in every namespace.
 * Rejects if neither has one.
 */
export async function readCertificateAuthority(kube: Pick<KubeClient, 'get'>): Promise<string> {
  const info = await kube
    .get(kinds.configMap, { namespace: 'kube-public', name: 'cluster-info' })
    .catch(() => undefined)
  const published = authorityIn(info?.data?.kubeconfig ?? '')
  if (published !== undefined) return published
  const bundle = await kube.get(kinds.configMap, { namespace: 'kube-system', name: 'kube-root-ca.crt' })
  const authority = bundle?.data?.['ca.crt']
  if (authority) return authority
  throw new Error(
    'the certificate authority is unknown: neither ConfigMap kube-public/cluster-info nor kube-system/kube-root-ca.crt holds it',
  )
}

/** The first `certificate-authority-data` of a kubeconfig in YAML or JSON. */
function authorityIn(kubeconfig: string): string | undefined {
  const encoded = /["']?certificate-authority-data["']?\s*:\s*["']?([A-Za-z0-9+/=]+)/.exec(kubeconfig)?.[1]
  if (encoded === undefined) return undefined
  const decoded = Buffer.from(encoded, 'base64').toString('utf8')
  return decoded === '' ? undefined : decoded
}
