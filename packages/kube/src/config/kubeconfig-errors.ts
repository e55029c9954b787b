/** A kubeconfig that cannot be used. The message names the file, the context and what to do. */
export class KubeConfigError extends Error {
  readonly code = 'KubeConfigInvalid'

  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'KubeConfigError'
  }
}
