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
    [
      { profiles: [] },
      'profiles must be left out: the known fields here are podTopologySpread, nodeResourcesFit',
    ],
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

  const fitting = (scoringStrategy: unknown) => ({ nodeResourcesFit: { scoringStrategy } })
  const cpuAndMemory = [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ]
  const shape = [
    { utilization: 0, score: 0 },
    { utilization: 100, score: 10 },
  ]
  const gpu = { name: 'nvidia.com/gpu', weight: 5 }
  const ratio = { type: 'RequestedToCapacityRatio', requestedToCapacityRatio: { shape } }

  test('WNT-39 a scoring strategy is read as kube-scheduler reads it', () => {
    const read = (strategy: unknown) => {
      const config = parseSchedulerConfig(fitting(strategy))
      return 'problems' in config ? config : config.fitScoring
    }
    assert.deepEqual(read({ type: 'MostAllocated' }), { type: 'MostAllocated', resources: cpuAndMemory })
    assert.deepEqual(read({ ...ratio, resources: [gpu, { name: 'cpu' }] }), {
      type: 'RequestedToCapacityRatio',
      resources: [gpu, { name: 'cpu', weight: 1 }],
      shape,
    })
    for (const usual of [{ type: 'LeastAllocated' }, null, undefined]) assert.equal(read(usual), undefined)
  })

  const inStrategy = 'nodeResourcesFit.scoringStrategy'
  const wrongStrategies: readonly (readonly [unknown, string])[] = [
    [7, `${inStrategy} must be an object`],
    [
      { type: 'Most' },
      `${inStrategy}.type must be one of LeastAllocated, MostAllocated, RequestedToCapacityRatio`,
    ],
    [{ type: 'RequestedToCapacityRatio' }, `${inStrategy}.requestedToCapacityRatio must be an object`],
    [
      { type: 'MostAllocated', resources: [{ name: 'a b' }] },
      `${inStrategy}.resources[0].name must be the name of a resource such as cpu or nvidia.com/gpu`,
    ],
    [
      { type: 'MostAllocated', resources: [{ name: 'cpu', weight: Infinity }] },
      `${inStrategy}.resources[0].weight must be an integer from 1 to 100`,
    ],
    [
      { ...ratio, requestedToCapacityRatio: { shape: [] } },
      `${inStrategy}.requestedToCapacityRatio.shape must be a list of at least one point`,
    ],
    [
      { ...ratio, requestedToCapacityRatio: { shape: shape.toReversed() } },
      `${inStrategy}.requestedToCapacityRatio.shape[1] must be of a higher utilization than the one before`,
    ],
    [
      { ...ratio, requestedToCapacityRatio: { shape: [{ utilization: 0, score: 11 }] } },
      `${inStrategy}.requestedToCapacityRatio.shape[0].score must be an integer from 0 to 10`,
    ],
  ]
  for (const [strategy, words] of wrongStrategies) {
    test(`WNT-39 ${words}`, () => {
      assert.equal(complaint(fitting(strategy)), words)
    })
  }
})
