/** A set of health checks behind one path, answered as Kubernetes' components do (operations.md 5). */
import { type HttpResponse, oneChunk } from '@tenon/runtime'

export interface Check {
  readonly name: string
  /** Answers why it fails, or nothing. Must not reject. */
  readonly run: (signal?: AbortSignal) => Promise<string | undefined>
  /** Put behind `ok` in listings. */
  readonly remark?: () => string
}

export interface ChecksQuestion {
  /** The check asked for alone; none or empty for all of them. */
  readonly name: string | undefined
  /** What follows the `?`. */
  readonly query: string
  readonly signal: AbortSignal | undefined
}

/**
 * All checks: `ok`, or a listing where one fails or `verbose` asks for it, without the reasons; `exclude`
 * leaves checks out. One check: `ok`, or why it fails.
 */
export async function serveChecks(
  checks: readonly Check[],
  { name, query, signal }: ChecksQuestion,
): Promise<HttpResponse> {
  if (name !== undefined && name !== '') return await serveOne(checks, name, signal)
  const asked = new URLSearchParams(query)
  const excluded = asked.getAll('exclude')
  const outcomes = await Promise.all(
    checks.map(async (check) => {
      if (excluded.includes(check.name)) return { isOk: true, line: `[+]${check.name} excluded: ok` }
      if ((await check.run(signal)) === undefined)
        return { isOk: true, line: `[+]${check.name} ok${check.remark?.() ?? ''}` }
      return { isOk: false, line: `[-]${check.name} failed: reason withheld` }
    }),
  )
  const isOk = outcomes.every((outcome) => outcome.isOk)
  if (isOk && !asked.has('verbose')) return plain(200, 'ok')
  const unknown = excluded.filter((each) => !checks.some((check) => check.name === each))
  const lines = [
    ...outcomes.map(({ line }) => line),
    ...(unknown.length === 0
      ? []
      : [
          `warn: some health checks cannot be excluded: no matches for ${unknown.map((each) => `"${each}"`).join(', ')}`,
        ]),
    // It says so of readiness too, and what reads it may know no other word.
    `healthz check ${isOk ? 'passed' : 'failed'}`,
  ]
  return plain(isOk ? 200 : 500, `${lines.join('\n')}\n`)
}

async function serveOne(
  checks: readonly Check[],
  name: string,
  signal: AbortSignal | undefined,
): Promise<HttpResponse> {
  const check = checks.find((each) => each.name === name)
  if (check === undefined) return plain(404, '404 page not found\n')
  const problem = await check.run(signal)
  return problem === undefined ? plain(200, 'ok') : plain(500, `internal server error: ${problem}\n`)
}

function plain(status: number, text: string): HttpResponse {
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
  return { status, headers, body: oneChunk(text) }
}
