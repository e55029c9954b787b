/** Exit code of a start that its settings make impossible (operations.md 2). */
export const startUpExitCode = 2

/** A failure that the user can fix: one clear line on stderr, then the exit code, 1 unless told. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, options?: ErrorOptions & { readonly exitCode?: number }) {
    super(message, options)
    this.name = 'CliError'
    this.exitCode = options?.exitCode ?? 1
  }

  /** What is printed. */
  get line(): string {
    return `tenon: ${this.message}`
  }

  /** The same failure of a command whose exit code 1 is an answer. */
  exitingWith(exitCode: number): CliError {
    return new CliError(this.message, { cause: this, exitCode })
  }
}

/**
 * A failure in kubectl's words, such as `Error from server (NotFound): nodes "a" not found`.
 * Scripts look for these words at the start of a line, so that nothing stands before them.
 */
export class KubectlError extends CliError {
  override get line(): string {
    return this.message
  }

  override exitingWith(exitCode: number): KubectlError {
    return new KubectlError(this.message, { cause: this, exitCode })
  }
}
