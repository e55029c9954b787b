/** A failure that the user can mend: one clear line on stderr, then exit code 1. */
export class CliError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CliError'
  }
}
