import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContainerResourcePolicy, ResourceList, VerticalPodAutoscaler } from '@tenon/api'
import { predictedRequests } from './controller.ts'

type Spec = NonNullable<VerticalPodAutoscaler['spec']>

const targetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }
const targets = { main: { cpu: '500m', memory: '1Gi' } }

function anAutoscaler(
  spec: Partial<Spec> = {},
  recommended: Readonly<Record<string, ResourceList>> = targets,
): VerticalPodAutoscaler {
  return {
    apiVersion: 'autoscaling.k8s.io/v1',
    kind: 'VerticalPodAutoscaler',
    metadata: { name: 'web', namespace: 'default' },
    spec: { targetRef, ...spec },
    status: {
      recommendation: {
        containerRecommendations: Object.entries(recommended).map(([containerName, target]) => ({
          containerName,
          target,
        })),
      },
    },
  }
}
const withPolicies = (...containerPolicies: readonly ContainerResourcePolicy[]): Partial<Spec> => ({
  resourcePolicy: { containerPolicies },
})
const of = (...given: Parameters<typeof anAutoscaler>) =>
  Object.fromEntries(
    predictedRequests(anAutoscaler(...given)).map(({ container, requests }) => [container, requests]),
  )
const gi = 2 ** 30

describe('requests that a VerticalPodAutoscaler will give', () => {
  test('what is recommended, of CPU and memory unless it says otherwise', () => {
    assert.deepEqual(of({}, { main: { cpu: '500m', memory: '1Gi', 'example.com/gpu': '1' } }), {
      main: { cpu: 500, memory: gi },
    })
    const onlyMemory = withPolicies({ containerName: 'main', controlledResources: ['memory'] })
    assert.deepEqual(of(onlyMemory), { main: { memory: gi } })
    assert.deepEqual(of(withPolicies({ containerName: 'main', controlledResources: [] })), {})
  })

  test('BUF-95 a start-up boost multiplies the CPU and leaves the memory', () => {
    const boost = { cpu: { type: 'Factor', factor: 3 } }
    assert.deepEqual(of({ startupBoost: boost }), { main: { cpu: 1500, memory: gi } })
    const own = { cpu: { type: 'Quantity', quantity: '250m' } }
    assert.deepEqual(
      of({ startupBoost: boost, ...withPolicies({ containerName: 'main', startupBoost: own }) }),
      { main: { cpu: 750, memory: gi } },
      "the container's own counts",
    )
    for (const factor of [0, 1, -2])
      assert.deepEqual(of({ startupBoost: { cpu: { type: 'Factor', factor } } }), {
        main: { cpu: 500, memory: gi },
      })
    assert.deepEqual(
      of({ startupBoost: boost, ...withPolicies({ containerName: 'main', startupBoost: {} }) }),
      { main: { cpu: 500, memory: gi } },
      'one without CPU takes the other away (trap 37)',
    )
  })

  test('BUF-96 bounds hold, resource by resource', () => {
    const bounds = { minAllowed: { cpu: '200m' }, maxAllowed: { cpu: '2', memory: '512Mi' } }
    const policy = withPolicies({ containerName: 'main', ...bounds })
    assert.deepEqual(of(policy, { main: { cpu: '100m', memory: '1Gi' } }), {
      main: { cpu: 200, memory: gi / 2 },
    })
    assert.deepEqual(of(policy, { main: { cpu: '3' } }), { main: { cpu: 2000 } })
  })

  test('BUF-129 the boost comes on top of the upper bound', () => {
    const boost = { startupBoost: { cpu: { type: 'Factor', factor: 2 } } }
    const policy = withPolicies({ containerName: 'main', maxAllowed: { cpu: '1' } })
    assert.deepEqual(of({ ...boost, ...policy }, { main: { cpu: '1500m' } }), { main: { cpu: 2000 } })
  })

  test('BUF-97 a policy of a container counts before the one of all', () => {
    const policies = withPolicies(
      { containerName: '*', maxAllowed: { cpu: '100m' } },
      { containerName: 'main', maxAllowed: { cpu: '300m' } },
    )
    assert.deepEqual(of(policies, { main: { cpu: '1' }, side: { cpu: '1' } }), {
      main: { cpu: 300 },
      side: { cpu: 100 },
    })
  })

  test('BUF-98 what is switched off predicts nothing', () => {
    assert.deepEqual(of({ updatePolicy: { updateMode: 'Off' } }), {})
    const policy = withPolicies({ containerName: 'main', mode: 'Off' })
    assert.deepEqual(of(policy, { main: { cpu: '1' }, side: { cpu: '2' } }), { side: { cpu: 2000 } })
    for (const updateMode of ['Auto', 'Initial', 'Recreate', 'InPlaceOrRecreate'])
      assert.deepEqual(Object.keys(of({ updatePolicy: { updateMode } })), ['main'], updateMode)
  })

  test('neither does one without a target or a recommendation', () => {
    const { spec: _, ...without } = anAutoscaler()
    assert.deepEqual(predictedRequests(without), [])
    const { status: __, ...fresh } = anAutoscaler()
    assert.deepEqual(predictedRequests(fresh), [])
    assert.deepEqual(of({}, {}), {})
  })

  test('containers may be called as members of every object are', () => {
    assert.deepEqual(of({}, { constructor: { cpu: '1' } }), { constructor: { cpu: 1000 } })
  })

  test('an amount that is none is told', () => {
    assert.throws(() => of({}, { main: { cpu: 'much' } }), /"much" is not a Kubernetes quantity/)
  })
})
