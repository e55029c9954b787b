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
}
