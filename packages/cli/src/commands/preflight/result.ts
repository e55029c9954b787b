/** What checks of `tenon preflight` find. */

/** How bad it is: only `fail` keeps an installation from working. */
export type CheckStatus = 'ok' | 'warn' | 'fail'

/** Something that is wrong, and what to do. */
export interface Finding {
  readonly status: 'warn' | 'fail'
  /** A clause without a full stop; names the object and the field. */
  readonly message: string
  /** A clause without a full stop. */
  readonly fix: string
}

/** What a check came to. */
export interface CheckOutcome {
  /** What was found in order; told when there are no findings. */
  readonly summary: string
  readonly findings: readonly Finding[]
}

/** A check that has ended. */
export interface CheckResult extends CheckOutcome {
  readonly name: string
  readonly durationMs: number
}

/** The worst of a result. */
export function statusOf({ findings }: Pick<CheckOutcome, 'findings'>): CheckStatus {
  if (findings.some(({ status }) => status === 'fail')) return 'fail'
  return findings.length > 0 ? 'warn' : 'ok'
}

/** A list for a sentence; of a long one the first few, and how many more there are. */
export function few(items: readonly string[], most = 5): string {
  const rest = items.length - most
  return rest <= 0 ? items.join(', ') : `${items.slice(0, most).join(', ')} and ${rest} more`
}
