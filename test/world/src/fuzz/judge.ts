/** Judges one case, and compares it with a second one where necessary. */
import type { Case, Finding } from './case.ts'
import { decide } from './decide.ts'
import { underOtherZones, underPlainNames } from './generate/draw.ts'
import { type Decision, improvement, renaming, soundness } from './oracles/decisions.ts'
import { firstFitPrice } from './oracles/first-fit.ts'
import { type Onlooker, play, type Played } from './play.ts'
import type { PlantedFault } from './planted/planted-fault.ts'

/** The violations of a case, and the number of checks. */
export interface Judgement {
  readonly findings: readonly Finding[]
  readonly pods: number
  readonly nodes: number
}

/** Plays a case and returns the findings of all oracles. */
export async function judge(given: Case, fault?: PlantedFault, onlooker?: Onlooker): Promise<Judgement> {
  if (given.part === 'engine') return judgeDecisions(given)
  const played = await play(given, fault, onlooker)
  const findings = [...played.findings]
  if (findings.length === 0) findings.push(...(await priceFindings(given, played)))
  if (findings.length === 0 && given.part === 'names')
    findings.push(...(await nameFindings(given, played, fault)))
  return { findings, pods: played.pods, nodes: played.nodes }
}

function judgeDecisions(given: Case): Judgement {
  try {
    const plain = decide(given)
    const [planned, free] = [decide(given, 'planned'), decide(given, 'free')]
    const findings = [
      ...soundness(plain, 'first fit'),
      ...soundness(planned, 'planned placement'),
      ...soundness(free, 'free placement'),
      ...improvement(planned, plain),
      ...zoneFindings(given, planned),
    ]
    return { findings, pods: plain.given, nodes: plain.claims.length }
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { findings: [{ oracle: 'noThrow', text, atMs: 0 }], pods: 0, nodes: 0 }
  }
}

/**
 * A spread counts the zones that the plan opens, and names break ties between zones. So a difference counts only if it
 * is there before a plan counts its own zones.
 */
function zoneFindings(given: Case, planned: Decision): readonly Finding[] {
  const other = underOtherZones(given)
  const found = renaming(planned, decide(other, 'planned'))
  if (found.length === 0) return []
  const [mine, theirs] = [given, other].map((each) => decide(each, 'planned', 'disruption'))
  return mine === undefined || theirs === undefined || renaming(mine, theirs).length > 0 ? found : []
}

/** Price lists have five decimals, so two nodes at half the price may cost this much more. */
const roundedUp = 5e-6

/**
 * The launched fleet must not cost more than a plain first fit. There are two of those, as the order of pods is
 * arbitrary: one without any product code, and the engine's own without improvements.
 */
async function priceFindings(given: Case, { settled, nodes }: Played): Promise<readonly Finding[]> {
  if (settled?.pricePerHour === undefined) return []
  const least = settled.pricePerHour - nodes * roundedUp
  const plain = firstFitPrice(given)
  if (plain === undefined || least <= plain) return []
  const cautious: Case = { ...given, settings: { ...given.settings, compatibility: 'karpenter' } }
  const other = (await play(cautious)).settled?.pricePerHour
  if (other === undefined || least <= other) return []
  const text = `the fleet costs ${settled.pricePerHour} an hour, a plain first fit ${plain}, the product without improvements ${other}`
  return [{ oracle: 'noHigherPrice', text, atMs: settled.atMs }]
}

/** Names must not affect decisions. */
async function nameFindings(
  given: Case,
  played: Played,
  fault: PlantedFault | undefined,
): Promise<readonly Finding[]> {
  const plain = await play(underPlainNames(given), fault)
  const [mine, theirs] = [played, plain].map(({ settled, launched, pods, accepted }) =>
    JSON.stringify({ objects: accepted.length, pods, launched, runs: settled !== undefined }),
  )
  if (mine === theirs) return []
  const text = `with inherited names ${mine}, with plain names ${theirs}`
  return [{ oracle: 'sameUnderOtherNames', text, atMs: played.settled?.atMs ?? 0 }]
}
