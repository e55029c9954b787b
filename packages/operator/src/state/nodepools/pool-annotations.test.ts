import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolAnnotationProblems, poolWishes } from './pool-annotations.ts'

const keys = [
  'zone-balance',
  'price-per-node',
  'expiration',
  'expiration-deadline',
  'expiration-jitter',
  'disrupt-zones',
  'drift-without-surge',
  'repair',
  'repair-budget',
  'time-zone',
].map((name) => `tenon.sh/${name}`)

const annotated = (annotations: Readonly<Record<string, string>>) => ({
  metadata: { name: 'pool', annotations },
})

test('annotations are read, with space around them', () => {
  const wishes = poolWishes(
    annotated({
      'tenon.sh/zone-balance': ' 2.5% ',
      'tenon.sh/price-per-node': '0.01',
      'tenon.sh/expiration': 'soft',
      'tenon.sh/expiration-deadline': '72h',
      'tenon.sh/expiration-jitter': '10%',
      'tenon.sh/disrupt-zones': 'sequential',
      'tenon.sh/drift-without-surge': 'true',
      'tenon.sh/repair': 'reboot, replace',
      'tenon.sh/repair-budget': '2',
      'tenon.sh/time-zone': 'Europe/Zurich',
      'tenon.sh/of-another': 'kind',
    }),
  )
  assert.deepEqual(wishes, {
    zoneBalance: 0.025,
    pricePerNode: 0.01,
    expiration: 'soft',
    expirationDeadline: 72 * 3_600_000,
    expirationJitter: 0.1,
    disruptZones: 'sequential',
    driftWithoutSurge: true,
    repair: 'reboot',
    repairBudget: { count: 2 },
    timeZone: 'Europe/Zurich',
  })
  assert.deepEqual(poolWishes(annotated({ 'tenon.sh/repair-budget': '10%' })), {
    repairBudget: { fraction: 0.1 },
  })
  assert.deepEqual(poolWishes({ metadata: { name: 'plain' } }), {})
})

test('WNT-42 a hostile value counts as absent, and is named with field and fix', () => {
  const hostile = [
    '',
    ' ',
    'x'.repeat(10_000),
    '__proto__',
    'NaN',
    '-1',
    '1e309',
    'true',
    '{}',
    '101%',
    '0x10',
    '٣%',
    '9999999999h',
  ]
  for (const key of keys)
    for (const value of hostile) {
      if (key === 'tenon.sh/drift-without-surge' && value === 'true') continue
      const pool = annotated({ [key]: value })
      assert.deepEqual(poolWishes(pool), {}, `${key}=${value.slice(0, 20)}`)
      const [problem, ...others] = poolAnnotationProblems(pool)
      assert.equal(others.length, 0)
      assert.equal(problem?.field, `metadata.annotations["${key}"]`)
      assert.ok(problem.message.length < 200)
      assert.match(problem.fix ?? '', /^use /)
    }
})

test('WNT-42 the other annotations of the NodePool still count', () => {
  const pool = annotated({ 'tenon.sh/price-per-node': 'much', 'tenon.sh/zone-balance': '2%' })
  assert.deepEqual(poolWishes(pool), { zoneBalance: 0.02 })
})
