/** Plays a journey with a controller that dies at chosen writes, and compares where it ends. */
import assert from 'node:assert/strict'
import { createCredentials } from '@tenon/devcluster'
import { type HttpRequest, integerBetween, SeededRandom, VirtualClock } from '@tenon/runtime'
import type { Death } from '../mortality.ts'
import { endState } from './end-state.test-support.ts'
import { orphans } from './ledger.test-support.ts'
import { minutes, type ProviderName, seconds, Stand } from './stand.test-support.ts'

/** A piece of a node's life. */
export interface Journey {
  readonly name: string
  readonly options?: Parameters<typeof Stand.open>[2]
  /** Brings about what it starts from, with a controller that does not die. */
  readonly prepare: (stand: Stand) => Promise<void>
  /** What somebody does; the rest is the controller's. */
  readonly begin: (stand: Stand) => void
  /** Whether the undisturbed run has come to its end. */
  readonly isOver: (stand: Stand) => boolean
}

/** One write of the run that nothing disturbs. */
interface Write {
  /** `METHOD path` */
  readonly text: string
  readonly atMs: number
  /** Neither refused nor an Event, which nobody reads but people. */
  readonly hasEffect: boolean
}

/** The run that nothing disturbs. */
interface Reference {
  /** Every write of the controller, in order. */
  readonly writes: readonly Write[]
  readonly end: readonly string[]
}

const settleMs = 5 * seconds
/** Longest wait: a leaked instance is swept after five minutes, a dead launch given up after fifteen. */
const limitMs = 40 * minutes

/** Keys are costly, and no test looks at them: all worlds of a file share them. */
const credentials = await createCredentials(new VirtualClock().now())

async function open({ options, prepare }: Journey, provider: ProviderName): Promise<Stand> {
  const stand = await Stand.open(provider, credentials, options)
  await prepare(stand)
  return stand
}

/** Plays a journey without a death. */
async function playUndisturbed(journey: Journey, provider: ProviderName): Promise<Reference> {
  const stand = await open(journey, provider)
  const writes: { readonly request: HttpRequest; readonly atMs: number }[] = []
  stand.operator.process.countFromHere()
  stand.operator.process.onWrite = (request) => {
    writes.push({ request, atMs: stand.world.clock.now() })
  }
  journey.begin(stand)
  await stand.until(() => journey.isOver(stand), 30 * minutes)
  const writesUntilOver = writes.length
  await stand.pass(settleMs)
  assert.deepEqual([...stand.ledger.violations, ...orphans(stand.world)], [], `${journey.name}, ${provider}`)
  const reference = {
    writes: writes.slice(0, writesUntilOver).map(({ request, atMs }) => ({
      text: `${request.method} ${request.path.split('?')[0]}`,
      atMs,
      hasEffect: !stand.ledger.wasRefused(request) && !request.path.endsWith('/events'),
    })),
    end: endState(stand),
  }
  await stand.close()
  return reference
}

/** Plays a journey in which one controller after the other dies; the last one lives. */
async function playWithDeaths(
  journey: Journey,
  provider: ProviderName,
  reference: Reference,
  [first, ...later]: readonly [Death, ...Death[]],
): Promise<void> {
  const story = `${journey.name}, ${provider}, death ${[first, ...later]
    .map(({ atWrite, when }) => `${when} write ${atWrite}`)
    .join(' and ')} (${reference.writes[first.atWrite - 1]?.text})`
  const stand = await open(journey, provider)
  stand.operator.process.countFromHere(first)
  journey.begin(stand)
  await stand.until(() => stand.operator.process.isDead, 30 * minutes)
  for (const death of later) {
    await stand.world.bury(stand.operator)
    await stand.start(death)
    await stand.world.clock.advanceUntil(() => stand.operator.process.isDead, 5 * minutes)
  }
  if (stand.operator.process.isDead) {
    await stand.world.bury(stand.operator)
    await stand.start()
  }
  const isThere = () => endState(stand).join('\n') === reference.end.join('\n')
  for (let waitedMs = 0; waitedMs < limitMs && !isThere(); waitedMs += seconds) await stand.pass(seconds)
  await stand.pass(settleMs)
  const end = endState(stand)
  const differences = [...lacking(end, reference.end, 'missing'), ...lacking(reference.end, end, 'too much')]
  const wrong = [...differences, ...stand.ledger.violations, ...orphans(stand.world)]
  assert.equal(wrong.join('\n'), '', story)
  await stand.close()
}

/** Lines of `all` that `some` does not have, or not as often. */
function lacking(some: readonly string[], all: readonly string[], what: string): readonly string[] {
  const left = [...some]
  return all.flatMap((line) => {
    const at = left.indexOf(line)
    if (at === -1) return [`${what}: ${line}`]
    left.splice(at, 1)
    return []
  })
}

/**
 * Death at every write, before and after it. Unless `all`, a death is omitted that leaves the
 * servers as another one does: after a write without effect, and before a write that follows
 * another at the same instant.
 */
function everyDeath({ writes }: Reference, all: boolean): readonly Death[] {
  return writes.flatMap(({ atMs, hasEffect }, index) => {
    const atWrite = index + 1
    const before: Death = { atWrite, when: 'before' }
    const after: Death = { atWrite, when: 'after' }
    if (all) return [before, after]
    if (!hasEffect) return []
    return atMs === writes[index - 1]?.atMs ? [after] : [before, after]
  })
}

/** With `TENON_CRASH_ALL=1` no death is omitted. */
const isAll = process.env.TENON_CRASH_ALL === '1'

/**
 * Plays a journey once for every death, and for `pairs` pairs of deaths drawn from a seed.
 * @param share of the deaths that are played, drawn from a seed as well; all with `TENON_CRASH_ALL=1`.
 */
export async function playEveryDeath(
  journey: Journey,
  provider: ProviderName,
  pairs: number,
  share: number = 1,
): Promise<void> {
  const reference = await playUndisturbed(journey, provider)
  const chance = new SeededRandom(`share ${journey.name} ${provider}`)
  for (const death of everyDeath(reference, isAll)) {
    if (isAll || integerBetween(chance, 1, 100) <= share * 100)
      await playWithDeaths(journey, provider, reference, [death])
  }
  const random = new SeededRandom(`${journey.name} ${provider}`)
  const draw = (most: number): Death => ({
    atWrite: integerBetween(random, 1, most),
    when: integerBetween(random, 0, 1) === 0 ? 'before' : 'after',
  })
  for (let pair = 0; pair < pairs; pair++) {
    // The second controller has less left to write, but says some things again.
    const deaths = [draw(reference.writes.length), draw(Math.ceil(reference.writes.length / 2))] as const
    await playWithDeaths(journey, provider, reference, deaths)
  }
}
