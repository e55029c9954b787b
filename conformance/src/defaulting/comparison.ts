/** Sends the same objects to both API servers, and reports where they differ. */
import { inParallel } from '../parallel.ts'
import { imitatedMinor, knownDifferences } from './by-minor.ts'
import { differences, essenceOf, type ServerAnswer } from './compare.ts'
import type { AskEmbedded } from './embedded.ts'
import type { DefaultingCase } from './kinds.ts'

/** Number of differences that are printed in full. */
const shownMost = 5
const posted = 'dryRun=All&fieldValidation=Strict'

/** The result of a comparison. */
export interface Comparison {
  /** Number of objects that kube-apiserver accepted. */
  readonly accepted: number
  /** For people: each case in which the two differ. */
  readonly found: readonly string[]
}

/**
 * @param real kube-apiserver, with an administrator's rights.
 * @param minor its minor version: what it does otherwise than the imitated one is no difference.
 */
export async function compareServers(
  cases: readonly DefaultingCase[],
  real: (method: string, path: string, body?: object) => Promise<ServerAnswer>,
  embedded: AskEmbedded,
  minor: number = imitatedMinor,
): Promise<Comparison> {
  const known = knownDifferences[minor] ?? []
  const found = new Map<DefaultingCase, readonly string[]>()
  let accepted = 0
  await inParallel(cases, async (one) => {
    const path = `${one.path}?${posted}`
    const truth = await real('POST', path, one.object)
    const ours = await embedded('POST', path, one.object)
    if (truth.status < 400) accepted++
    const different = differences(essenceOf(one.object, truth), essenceOf(one.object, ours)).filter(
      (line) =>
        !known.some(({ kind = one.object['kind'], is }) => kind === one.object['kind'] && is.test(line)),
    )
    if (different.length === 0) return
    const words = [truth, ours].map(({ body }) => String(body['message'] ?? ''))
    const said = [`  real says ${words[0]}`, `  embedded says ${words[1]}`]
    found.set(one, [...different.map((line) => `  ${line}`), ...said])
  })
  const shown = [...found].map(([one, lines], index) => {
    const title = `${one.name} ${String(one.object['kind'])}`
    const whole = index < shownMost ? [`  ${JSON.stringify(one.object)}`] : []
    return [title, ...lines, ...whole].join('\n')
  })
  return { accepted, found: shown }
}
