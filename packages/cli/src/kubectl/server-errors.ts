/** Failures of the API server in kubectl's words. */
import { isKubeError, KubeConfigError, type KubeError } from '@tenon/kube'
import { CliError, KubectlError } from '../errors.ts'

/** The failure that ends a command; a bug stays itself. */
export function commandError(cause: unknown, server: string): unknown {
  if (cause instanceof CliError) return cause
  if (cause instanceof KubeConfigError) return new KubectlError(`error: ${cause.message}`, { cause })
  if (!isKubeError(cause)) return cause
  return new KubectlError(serverText(cause, server), { cause })
}

function serverText(error: KubeError, server: string): string {
  const { kind, reason, serverMessage, message } = error
  if (kind === 'transport') return `Unable to connect to the server: ${server}: ${message}`
  if (kind === 'unauthorized') return 'error: You must be logged in to the server (Unauthorized)'
  const why = reason === undefined || reason === '' ? '' : ` (${reason})`
  return `Error from server${why}: ${serverMessage ?? message}`
}
