/** Prints the results of `tenon preflight`. */
import { junitXml } from '../../junit/report.ts'
import { type CheckResult, type CheckStatus, type Finding, statusOf } from './check.ts'

/** Values of `-o`. */
export type PreflightFormat = 'text' | 'json' | 'junit'

export function render(results: readonly CheckResult[], format: PreflightFormat): string {
  switch (format) {
    case 'text':
      return textOf(results)
    case 'json':
      return `${JSON.stringify(reportOf(results), null, 2)}\n`
    case 'junit':
      return junitXml('tenon preflight', results.map(caseOf))
  }
}

/** One line for each check, or for each of its findings. */
function textOf(results: readonly CheckResult[]): string {
  const width = Math.max(...results.map(({ name }) => name.length)) + 2
  const line = (status: CheckStatus, name: string, text: string) =>
    `${status.padEnd(6)}${name.padEnd(width)}${oneLine(text)}\n`
  return results
    .flatMap(({ name, summary, findings }) =>
      findings.length === 0
        ? [line('ok', name, summary)]
        : findings.map((finding) => line(finding.status, name, sentence(finding))),
    )
    .join('')
}

function sentence({ message, fix }: Finding): string {
  return `${message}. Fix: ${fix}.`
}

/** Messages of servers may have several lines. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

export interface PrintedPreflight {
  readonly status: CheckStatus
  readonly checks: readonly {
    readonly name: string
    readonly status: CheckStatus
    readonly message?: string
    readonly findings: readonly Finding[]
    readonly durationMs: number
  }[]
}

function reportOf(
  results: readonly CheckResult[],
): PrintedPreflight & { readonly apiVersion: string; readonly kind: string } {
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'PreflightReport',
    status: statusOf({ findings: results.flatMap(({ findings }) => findings) }),
    checks: results.map((result) => ({
      name: result.name,
      status: statusOf(result),
      ...(result.findings.length === 0 && { message: result.summary }),
      findings: result.findings,
      durationMs: Math.round(result.durationMs),
    })),
  }
}

/** JUnit has no warnings: they become the output of a passed case. */
function caseOf(result: CheckResult): Parameters<typeof junitXml>[1][number] {
  const { name, summary, findings, durationMs } = result
  const first = findings.find(({ status }) => status === 'fail')
  const text = findings.map((each) => `${each.status}: ${sentence(each)}`).join('\n')
  return {
    className: 'preflight',
    name,
    durationMs,
    ...(first === undefined
      ? { output: text === '' ? summary : text }
      : { failure: { message: first.message, type: 'fail', text } }),
  }
}
