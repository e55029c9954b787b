/** An invalid kubeconfig. The message names the file, the context and the fix. */
export class KubeConfigError extends Error {
  readonly code = 'KubeConfigInvalid'

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'KubeConfigError'
  }
}
