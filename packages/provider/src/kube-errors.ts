/** Errors of clouds that are used through the Kubernetes API. */
import { isKubeError, type KubeErrorKind } from '@tenon/kube'
import { ProviderError, type ProviderErrorKind } from './contract.ts'

const kinds: Partial<Readonly<Record<KubeErrorKind, ProviderErrorKind>>> = {
  tooManyRequests: 'throttled',
  unauthorized: 'unauthorized',
  forbidden: 'unauthorized',
}

/**
 * Runs `work` and converts errors of the Kubernetes API to those of the contract. Other errors are not changed. After
 * `signal` aborted, its reason is thrown.
 */
export async function withProviderErrors<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal?.throwIfAborted()
    if (!isKubeError(error)) throw error
    const { retryAfterMs } = error
    const details = { cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) }
    throw new ProviderError(kinds[error.kind] ?? 'other', `Kubernetes API: ${error.message}`, details)
  }
}
