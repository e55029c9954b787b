/** Exit code if the settings are invalid (operations.md 2). */
export const startUpExitCode = 2

/** An error that the user can fix: printed as one line on stderr. Exit code 1 by default. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, options?: ErrorOptions & { readonly exitCode?: number }) {
    super(message, options)
    this.name = 'CliError'
    this.exitCode = options?.exitCode ?? 1
  }

  get line(): string {
    return `error: ${this.message}`
  }

  /** The same error for a command whose exit code 1 is an answer. */
  exitingWith(exitCode: number): CliError {
    return new CliError(this.message, { cause: this, exitCode })
  }
}

/**
 * An error in kubectl's words, such as `Error from server (NotFound): nodes "a" not found`. Scripts expect them
 * at the start of the line, so no prefix is printed.
 */
export class KubectlError extends CliError {
  override get line(): string {
    return this.message
  }

  override exitingWith(exitCode: number): KubectlError {
    return new KubectlError(this.message, { cause: this, exitCode })
  }
}
