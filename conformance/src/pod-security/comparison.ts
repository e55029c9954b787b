/** Compares what two API servers say of a request: status, message and warnings. */
import type { Answer, Ask } from '../ask.ts'
import { inParallel } from '../parallel.ts'

export interface SecurityCase {
  readonly name: string
  readonly method: 'POST' | 'PATCH'
  readonly path: string
  readonly body: object
  readonly contentType?: string
}

/** Counts of what was compared, and each difference for people. */
interface Comparison {
  readonly accepted: number
  readonly refused: number
  readonly warned: number
  readonly found: readonly string[]
}

/** Sends each case to both servers, as a dry run. */
export async function compareSecurity(
  cases: readonly SecurityCase[],
  real: Ask,
  embedded: Ask,
): Promise<Comparison> {
  const counts = { accepted: 0, refused: 0, warned: 0 }
  const found = new Map<SecurityCase, string>()
  await inParallel(cases, async (one) => {
    const { method, body, contentType } = one
    const ask = (server: Ask) => server(method, `${one.path}?dryRun=All`, body, contentType)
    const [truth, ours] = [saidBy(await ask(real)), saidBy(await ask(embedded))]
    if (truth.status < 400) counts.accepted++
    if (truth.status === 403) counts.refused++
    if (truth.warnings !== '') counts.warned++
    if (JSON.stringify(truth) === JSON.stringify(ours)) return
    const said = [truth, ours].map(({ status, message, warnings }) => `${status} ${message}\n    ${warnings}`)
    found.set(
      one,
      `${one.name} ${one.path}\n  real ${said[0]}\n  embedded ${said[1]}\n  ${JSON.stringify(body)}`,
    )
  })
  return { ...counts, found: [...found.values()] }
}

/** What is compared. Names that each server generates for itself are replaced. */
function saidBy({ status, body, warning = '' }: Answer) {
  const message = status < 400 ? '' : String(body.message).replace(/"made-[a-z0-9]{5}"/g, '"made-NAME"')
  return { status, message, warnings: withoutOwn(warning) }
}

/** The embedded API server also warns of what it does not simulate. */
function withoutOwn(header: string): string {
  return header
    .split(/, (?=299 - ")/)
    .filter((warning) => !warning.includes('has no effect on the embedded cluster'))
    .join('\n    ')
}
