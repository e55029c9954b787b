/**
 * Holds the embedded scheduler to kube-scheduler: random clusters and pods, and on which nodes either would place
 * them. TENON_CASES=<number> tries more, TENON_PLACEMENT_SEED=<text> others, TENON_PLACEMENT_CASE=<name> one alone.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { SeededRandom, SystemClock } from '@tenon/runtime'
import { type Answer, askEmbedded, askKubernetes, prepare } from '../src/placement/answers.ts'
import { BareScheduler } from '../src/placement/bare-scheduler.ts'
import { drawCase, type PlacementCase } from '../src/placement/cases.ts'
import { withFeatures } from '../src/placement/features.ts'
import { Draw } from '../src/scheduling-proof/objects.ts'

const seed = process.env['TENON_PLACEMENT_SEED'] ?? 'placement'
const wanted = Number(process.env['TENON_CASES'] ?? 300)
const batchSize = 50
/** So many differences are shown in full. */
const shownMost = 5

const names =
  process.env['TENON_PLACEMENT_CASE']?.split(',') ?? Array.from({ length: wanted }, (_, index) => `c${index}`)

/** What the two say differently about a case; undefined when they agree. */
function differenceOf(one: PlacementCase, real: Answer, embedded: Answer): string | undefined {
  const refused = [Object.keys(real.refused).toSorted(), Object.keys(embedded.refused).toSorted()]
  const isSame =
    JSON.stringify(refused[0]) === JSON.stringify(refused[1]) &&
    one.probes.every(
      ({ metadata: { name } }) => JSON.stringify(real.nodes[name]) === JSON.stringify(embedded.nodes[name]),
    )
  if (isSame) return undefined
  const lines = one.probes
    .filter(
      ({ metadata: { name } }) => JSON.stringify(real.nodes[name]) !== JSON.stringify(embedded.nodes[name]),
    )
    .flatMap(({ metadata: { name } }) => [
      `${one.name}/${name}: kube-scheduler takes [${real.nodes[name]?.join(' ') ?? 'not created'}], ` +
        `the embedded one [${embedded.nodes[name]?.join(' ') ?? 'not created'}]`,
      `  kube-scheduler says ${JSON.stringify(real.reasons[name])}`,
      `  the embedded one says ${JSON.stringify(embedded.reasons[name])}`,
    ])
  return [
    ...lines,
    `  refused by kube-apiserver: ${JSON.stringify(real.refused)}`,
    `  refused by the embedded one: ${JSON.stringify(embedded.refused)}`,
  ].join('\n')
}

describe(`placement, seed ${seed}`, () => {
  const clock = new SystemClock()
  let scheduler: BareScheduler

  before(async () => {
    scheduler = await BareScheduler.start(clock)
    await prepare(scheduler)
  })

  after(() => scheduler?.stop())

  test(`VER-8 the embedded scheduler places pods where kube-scheduler does, ${names.length} cases`, {
    timeout: 120_000 + names.length * 1_000,
  }, async (context) => {
    const differences = new Map<PlacementCase, string>()
    let placed = 0
    let asked = 0
    let refused = 0
    for (let start = 0; start < names.length; start += batchSize) {
      const cases = names.slice(start, start + batchSize).map((name) => {
        const plain = drawCase(name, new Draw(new SeededRandom(`${seed} ${name}`)))
        return withFeatures(plain, new Draw(new SeededRandom(`${seed} ${name} features`)), scheduler.minor)
      })
      const answers = await askKubernetes(scheduler, clock, cases)
      for (const [index, one] of cases.entries()) {
        const real = answers[index] as Answer
        const difference = differenceOf(one, real, askEmbedded(one, scheduler.minor))
        if (difference !== undefined) differences.set(one, difference)
        const verdicts = Object.values(real.nodes)
        asked += verdicts.length
        placed += verdicts.filter(({ length }) => length > 0).length
        refused += Object.keys(real.refused).length
      }
    }
    context.diagnostic(`${asked} pods asked about, ${placed} fit somewhere, ${refused} objects refused`)
    // A comparison of nothing would hold as well.
    assert.ok(placed > asked / 10 && placed < asked, `${placed} of ${asked} pods fit somewhere`)
    const shown = [...differences].slice(0, shownMost).map(([one, text]) => `${text}\n${JSON.stringify(one)}`)
    const others = [...differences.values()].slice(shownMost)
    assert.equal(differences.size, 0, `seed ${seed}:\n${[...shown, ...others].join('\n')}`)
  })
})
