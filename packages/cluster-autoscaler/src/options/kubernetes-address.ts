import type { KubernetesAddress } from './process-options.ts'

/** Parses `--kubernetes`; absent parts are as in a pod. Undefined for an empty text. */
export function kubernetesAddressOf(
  text: string,
): { readonly address: KubernetesAddress | undefined } | { readonly problem: 'not a URL' } {
  if (text === '') return { address: undefined }
  const url = URL.parse(text)
  const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol)
  // Only settings, such as `?inClusterConfig=false`.
  const query = isWeb ? url.searchParams : text.startsWith('?') ? new URLSearchParams(text) : undefined
  if (query === undefined) return { problem: 'not a URL' }
  const kubeconfig = query.get('auth') ?? ''
  return {
    address: {
      ...(isWeb && { server: `${url.origin}${url.pathname === '/' ? '' : url.pathname}` }),
      ...(kubeconfig !== '' && { kubeconfig }),
      isInCluster: isTrue(query.get('inClusterConfig') ?? 'true'),
      usesServiceAccount: isTrue(query.get('useServiceAccount') ?? 'false'),
    },
  }
}

function isTrue(text: string): boolean {
  return ['1', 't', 'true'].includes(text.toLowerCase())
}
