import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseSchedulerConfig, renderSchedulerConfigProblems } from './scheduler-config.ts'

const zonal = {
  maxSkew: 1,
  topologyKey: 'topology.kubernetes.io/zone',
  whenUnsatisfiable: 'DoNotSchedule',
}
const withConstraints = (...defaultConstraints: readonly unknown[]) => ({
  podTopologySpread: { defaultConstraints },
})

/** The complaint about a document, `undefined` for a good one. */
function complaint(document: unknown): string | undefined {
  const config = parseSchedulerConfig(document)
  return 'problems' in config ? renderSchedulerConfigProblems(config.problems) : undefined
}

describe('the scheduler configuration', () => {
  test('constraints come back as they were given', () => {
    const soft = { ...zonal, whenUnsatisfiable: 'ScheduleAnyway', nodeTaintsPolicy: 'Honor', minDomains: 2 }
    assert.deepEqual(parseSchedulerConfig(withConstraints(zonal, soft)), {
      defaultConstraints: [zonal, soft],
    })
  })

  for (const empty of [undefined, null, {}, { podTopologySpread: {} }, withConstraints()]) {
    test(`${JSON.stringify(empty)} sets no constraint`, () => {
      assert.deepEqual(parseSchedulerConfig(empty), { defaultConstraints: [] })
    })
  }

  const at = 'podTopologySpread.defaultConstraints'
  const wrong: readonly (readonly [unknown, string])[] = [
    ['text', 'the document must be an object'],
    [{ profiles: [] }, 'profiles must be left out: the known fields here are podTopologySpread'],
    [
      { podTopologySpread: { mode: 'x' } },
      'podTopologySpread.mode must be left out: the known fields here are defaultConstraints',
    ],
    [{ podTopologySpread: { defaultConstraints: {} } }, `${at} must be a list`],
    [withConstraints(7), `${at}[0] must be an object`],
    [withConstraints({ ...zonal, maxSkew: 0 }), `${at}[0].maxSkew must be an integer above 0`],
    [
      withConstraints({ ...zonal, topologyKey: 'a b' }),
      `${at}[0].topologyKey must be a label key such as topology.kubernetes.io/zone`,
    ],
    [
      withConstraints({ maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }),
      `${at}[0].topologyKey must be a label key such as topology.kubernetes.io/zone`,
    ],
    [
      withConstraints({ ...zonal, whenUnsatisfiable: 'Never' }),
      `${at}[0].whenUnsatisfiable must be one of DoNotSchedule, ScheduleAnyway`,
    ],
    [
      withConstraints({ ...zonal, labelSelector: {} }),
      `${at}[0].labelSelector must be left out: it is deduced for every pod`,
    ],
    [
      withConstraints({ ...zonal, matchLabelKeys: [] }),
      `${at}[0].matchLabelKeys must be left out: the selector is deduced for every pod`,
    ],
    [
      withConstraints(zonal, { ...zonal, maxSkew: 2 }),
      `${at}[1] must be the only one with its topologyKey and whenUnsatisfiable`,
    ],
  ]
  for (const [document, words] of wrong) {
    test(`BUF-108 ${words}`, () => {
      assert.equal(complaint(document), words)
    })
  }

  test('BUF-108 an unknown field of a constraint is refused', () => {
    assert.match(complaint(withConstraints({ ...zonal, weight: 1 })) ?? '', /\[0\]\.weight must be left out/)
  })

  test('BUF-109 one key may be spread over strictly and softly', () => {
    assert.equal(
      complaint(withConstraints(zonal, { ...zonal, whenUnsatisfiable: 'ScheduleAnyway' })),
      undefined,
    )
  })
})
